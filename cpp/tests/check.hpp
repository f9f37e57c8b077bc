// A test program: TEST("what holds") { ... CHECK(condition); } and RNET_TEST_MAIN(). Runs all tests, or those whose
// names contain the first argument; without those whose names contain the environment variable CHECK_SKIP.
#pragma once

#include <rnet.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <unistd.h>
#include <vector>

namespace check {

struct Test {
    const char* name;
    void (*run)();
};

inline std::vector<Test>& tests() {
    static std::vector<Test> all;
    return all;
}

struct Failed : std::exception {};

inline int add(const char* name, void (*run)()) {
    tests().push_back({name, run});
    return 0;
}

inline void require(bool holds, const char* condition, const char* file, int line) {
    if (holds) return;
    std::fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
    throw Failed();
}

/// A domain that no other test uses.
inline std::string domain() {
    static std::atomic<int> number{0};
    return "cpp" + std::to_string(getpid()) + "x" + std::to_string(++number);
}

/// Where the folder of a domain is made: below RNET_DIR, which cpp/test.sh removes also after a crash.
inline std::string folder(const std::string& name) {
    const char* base = std::getenv("RNET_DIR");
    return std::string(base ? base : "/dev/shm") + "/" + name;
}

inline int run(int argc, char** argv) {
    int failed = 0, ran = 0;
    const char* skipped = std::getenv("CHECK_SKIP");
    for (const Test& test : tests()) {
        if (argc > 1 && !std::strstr(test.name, argv[1])) continue;
        if (skipped && std::strstr(test.name, skipped)) {
            std::printf("skipped %s\n", test.name);
            continue;
        }
        ++ran;
        try {
            test.run();
            std::printf("ok      %s\n", test.name);
        } catch (const std::exception& error) {
            std::printf("FAILED  %s: %s\n", test.name, error.what());
            ++failed;
        }
        std::fflush(stdout);
    }
    std::printf("%d tests, %d failed\n", ran, failed);
    return failed > 0 || ran == 0;
}

}  // namespace check

#define CHECK_JOIN2(a, b) a##b
#define CHECK_JOIN(a, b) CHECK_JOIN2(a, b)
#define TEST(name)                                                                                      \
    static void CHECK_JOIN(test_, __LINE__)();                                                          \
    [[maybe_unused]] static int CHECK_JOIN(added_, __LINE__) = check::add(name, CHECK_JOIN(test_, __LINE__)); \
    static void CHECK_JOIN(test_, __LINE__)()
#define CHECK(condition) check::require(static_cast<bool>(condition), #condition, __FILE__, __LINE__)
#define RNET_TEST_MAIN() \
    int main(int argc, char** argv) { return check::run(argc, argv); }
