// Tells ThreadSanitizer how the library synchronises callbacks, which it does not see: the library is not instrumented.
// What a thread did before it registered a callback happens before the callback's calls. What these did happens before
// the end of the function that removes the callback. Without ThreadSanitizer the functions are empty.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define RNET_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RNET_TSAN 1
#endif
#endif

#if defined(RNET_TSAN)
extern "C" void __tsan_acquire(void* at);
extern "C" void __tsan_release(void* at);
#endif

namespace rnet::detail {

#if defined(RNET_TSAN)
inline char synchronised_by_library = 0;
inline void to_library() noexcept { __tsan_release(&synchronised_by_library); }
inline void from_library() noexcept { __tsan_acquire(&synchronised_by_library); }
#else
inline void to_library() noexcept {}
inline void from_library() noexcept {}
#endif

}  // namespace rnet::detail
