// The border between the harness, in Rust, and a system in C++: a table of functions for each system. Exceptions
// end here, as texts. src/ffi.rs has the same types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>

/// What an endpoint needs.
struct Setup {
    /// Where: a directory, or addresses, one a line.
    const char* place;
    const char* topic;
    /// The longest message in bytes.
    std::size_t max_len;
    bool is_urgent;
};

/// An answer: an error, or the address of a publisher.
struct Text {
    char text[512];

    void set(const char* from) noexcept {
        std::strncpy(text, from, sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
    }
};

/// Receives each message. Called on the thread of the subscriber.
struct Sink {
    void (*take)(void* context, const std::uint8_t* data, std::size_t len);
    void* context;
};

/// Writes a message in place.
struct Fill {
    void (*write)(void* context, std::uint8_t* data, std::size_t len);
    void* context;
};

/// The functions of a system. A failed one returns null or false and sets the text.
struct Functions {
    void (*version)(Text*);
    /// Sets the text to the address that subscribers need, where there is one.
    void* (*open_publisher)(const Setup*, Text*);
    bool (*send)(void* publisher, const std::uint8_t* data, std::size_t len, Text*);
    bool (*send_in_place)(void* publisher, std::size_t len, Fill, Text*);
    void (*close_publisher)(void* publisher);
    void* (*open_subscriber)(const Setup*, Sink, Text*);
    /// Returns when the sink is not called any more.
    void (*close_subscriber)(void* subscriber);
};

template <class F>
bool guarded(Text* error, F&& run) noexcept {
    try {
        run();
        return true;
    } catch (const std::exception& failure) {
        error->set(failure.what());
    } catch (...) {
        error->set("an exception that is not a std::exception");
    }
    return false;
}

/// The table of a system's classes.
template <class Publisher, class Subscriber>
constexpr Functions functions(void (*version)(Text*)) {
    return {
        version,
        [](const Setup* setup, Text* text) -> void* {
            Publisher* made = nullptr;
            guarded(text, [&] {
                made = new Publisher(*setup);
                text->set(made->address().c_str());
            });
            return made;
        },
        [](void* publisher, const std::uint8_t* data, std::size_t len, Text* error) {
            return guarded(error, [&] { static_cast<Publisher*>(publisher)->send(data, len); });
        },
        [](void* publisher, std::size_t len, Fill fill, Text* error) {
            return guarded(error, [&] { static_cast<Publisher*>(publisher)->send_in_place(len, fill); });
        },
        [](void* publisher) { delete static_cast<Publisher*>(publisher); },
        [](const Setup* setup, Sink sink, Text* error) -> void* {
            Subscriber* made = nullptr;
            guarded(error, [&] { made = new Subscriber(*setup, sink); });
            return made;
        },
        [](void* subscriber) { delete static_cast<Subscriber*>(subscriber); },
    };
}
