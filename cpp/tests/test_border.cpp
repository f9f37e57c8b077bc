// The border to C: null, options of another size, freed objects, forked and killed processes.
#include "topics.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

namespace {

TEST("the last will of a killed process arrives") {
    Domain domain;
    auto node = domain.node();
    auto subscriber = node.subscriber("/will");
    const pid_t child = fork();
    if (child == 0) {
        auto own = domain.node("mortal");
        rnet::PublisherOptions options;
        options.last_will = rnet::encoded("first will");
        auto publisher = own.publisher("/will", options);
        publisher.wait_for_subscribers();
        publisher.clear_last_will();
        publisher.set_last_will(rnet::bytes_of("I am gone"));
        publisher.send("alive");
        for (;;) pause();
    }
    CHECK(subscriber.recv_for(limit).text() == "alive");
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    for (;;) {
        auto sample = subscriber.recv_for(limit, std::nothrow);
        if (!sample && sample.error().code() == Code::peer_lost) continue;
        CHECK(sample.value().is_last_will() && sample->text() == "I am gone");
        break;
    }
    auto without = node.publisher("/without");
    CHECK(thrown([&] { without.set_last_will(rnet::bytes_of("x")); }) == Code::bad_value);
}

TEST("objects are freed in every order") {
    std::vector<int> order{0, 1, 2, 3};
    do {
        Domain domain;
        auto node = std::make_unique<rnet::Node>(domain.node());
        auto publisher = std::make_unique<rnet::Publisher<>>(node->publisher("/free"));
        auto subscriber = std::make_unique<rnet::Subscriber<>>(node->subscriber("/free"));
        publisher->wait_for_subscribers_for(1, limit);
        publisher->send(std::vector<std::uint8_t>(10'000, 1));
        auto sample = std::make_unique<rnet::Sample<>>(subscriber->recv_for(limit));
        auto loan = std::make_unique<rnet::Loan<Bytes>>(publisher->loan(10'000));
        for (int which : order) {
            if (which == 0) node.reset();
            if (which == 1) publisher.reset();
            if (which == 2) subscriber.reset();
            if (which == 3) sample.reset();
            if (publisher && subscriber) publisher->send("still there");
            if (sample) CHECK(sample->bytes()[9'999] == 1);
            (*loan)[9'999] = 1;
        }
    } while (std::next_permutation(order.begin(), order.end()));
}

TEST("endpoints keep a freed node alive") {
    Domain domain;
    auto publisher = domain.node("talker").publisher("/alive");
    auto subscriber = domain.node("listener").subscriber("/alive");
    publisher.wait_for_subscribers_for(1, limit);
    publisher.send("x");
    CHECK(subscriber.recv_for(limit).text() == "x");
    CHECK(thrown([&] { domain.node("talker"); }) == Code::name_taken);
    publisher.close();
    publisher.close(1s);
}

TEST("null is an invalid argument, and may be freed") {
    rnet_error* error = nullptr;
    rnet_publisher* publisher = nullptr;
    rnet_subscriber* subscriber = nullptr;
    rnet_subscription* subscription = nullptr;
    rnet_node* node = nullptr;
    rnet_loan* loan = nullptr;
    rnet_sample* kept = nullptr;
    const rnet_sample* sample = nullptr;
    rnet_type* type = nullptr;
    rnet_malformed_counter* counter = nullptr;
    auto counts = rnet::detail::initialised<rnet_subscriber_counts>();
    std::size_t count = 0;
    std::uint64_t now = 0;
    const auto bad = [&](rnet_code code) {
        const bool right = code == RNET_INVALID_ARGUMENT && rnet_error_code(error) == code && *rnet_error_text(error);
        rnet_error_free(error);
        error = nullptr;
        return right;
    };
    CHECK(bad(rnet_node_new(nullptr, nullptr, &node, &error)));
    CHECK(bad(rnet_node_new("\xff", nullptr, &node, &error)));
    CHECK(bad(rnet_node_now(nullptr, &now, &error)));
    CHECK(bad(rnet_publisher_new(nullptr, "/x", nullptr, &publisher, &error)));
    CHECK(bad(rnet_publisher_send(nullptr, nullptr, 0, &error)));
    CHECK(bad(rnet_publisher_send_with(nullptr, nullptr, 0, nullptr, &error)));
    CHECK(bad(rnet_publisher_loan(nullptr, 1, &loan, &error)));
    CHECK(bad(rnet_loan_send(nullptr, &error)));
    CHECK(bad(rnet_loan_send_with(nullptr, nullptr, &error)));
    CHECK(bad(rnet_loan_truncate(nullptr, 1, &error)));
    CHECK(bad(rnet_message_split(nullptr, {}, nullptr, 0, nullptr, &error)));
    CHECK(bad(rnet_publisher_wait_for_subscribers(nullptr, 1, 0, &error)));
    CHECK(bad(rnet_publisher_subscriber_count(nullptr, &count, &error)));
    CHECK(bad(rnet_publisher_assert_alive(nullptr, &error)));
    CHECK(bad(rnet_publisher_set_last_will(nullptr, nullptr, 0, &error)));
    CHECK(bad(rnet_publisher_close(nullptr, 0, &error)));
    CHECK(bad(rnet_subscriber_new(nullptr, "/x", nullptr, &subscriber, &error)));
    CHECK(bad(rnet_subscriber_recv(nullptr, 0, &sample, &error)));
    CHECK(bad(rnet_subscriber_latest(nullptr, 0, &sample, &error)));
    CHECK(bad(rnet_subscriber_wait_for_publishers(nullptr, 1, 0, &error)));
    CHECK(bad(rnet_subscriber_publisher_count(nullptr, &count, &error)));
    CHECK(bad(rnet_subscriber_get_counts(nullptr, &counts, &error)));
    CHECK(bad(rnet_subscriber_on(nullptr, nullptr, nullptr, nullptr, nullptr, &subscription, &error)));
    CHECK(bad(rnet_subscription_wait_for_publishers(nullptr, 1, 0, &error)));
    CHECK(bad(rnet_sample_keep(nullptr, &kept, &error)));
    CHECK(bad(rnet_type_builtin(nullptr, &type, &error)));
    CHECK(bad(rnet_type_plain("X", 8, 8, nullptr, 1, &type, &error)));
    CHECK(bad(rnet_malformed_counter_new(nullptr, &counter, &error)));
    CHECK(bad(rnet_malformed_counter_count(nullptr, 0, "why", &error)));
    CHECK(rnet_publisher_send(nullptr, nullptr, 0, nullptr) == RNET_INVALID_ARGUMENT);
    rnet_node_close(nullptr);
    rnet_node_free(nullptr);
    rnet_publisher_free(nullptr);
    rnet_loan_free(nullptr);
    rnet_subscriber_close(nullptr);
    rnet_subscriber_free(nullptr);
    rnet_subscription_free(nullptr);
    rnet_sample_free(nullptr);
    rnet_type_free(nullptr);
    rnet_error_free(nullptr);
    rnet_malformed_counter_free(nullptr);
    CHECK(rnet_sample_data(nullptr).len == 0 && rnet_sample_seq(nullptr) == 0 && rnet_loan_data(nullptr).len == 0);
    CHECK(*rnet_node_name(nullptr) == 0 && *rnet_sample_topic(nullptr) == 0 && *rnet_type_name(nullptr) == 0);

    Domain domain;
    auto real = domain.node();
    CHECK(bad(rnet_publisher_new(real.handle(), nullptr, nullptr, &publisher, &error)));
    CHECK(bad(rnet_publisher_new(real.handle(), "/x", nullptr, nullptr, &error)));
    auto sender = real.publisher("/x");
    CHECK(bad(rnet_publisher_send(sender.handle(), nullptr, 3, &error)));
    CHECK(bad(rnet_publisher_wait_for_subscribers(sender.handle(), 1, -1, &error)));
}

TEST("options of another size") {
    Domain domain;
    auto node = domain.node();
    rnet_publisher* publisher = nullptr;
    rnet_error* error = nullptr;
    const auto open = [&](const void* options) {
        const auto* given = static_cast<const rnet_publisher_options*>(options);
        const rnet_code code = rnet_publisher_new(node.handle(), "/size", given, &publisher, &error);
        rnet_publisher_free(publisher);
        publisher = nullptr;
        return code;
    };
    struct Newer {
        rnet_publisher_options known;
        std::uint64_t unknown;
    } newer{};
    for (std::size_t size : {std::size_t{0}, std::size_t{4}, std::size_t{5000}}) {
        newer.known.struct_size = size;
        CHECK(open(&newer) == RNET_INVALID_ARGUMENT);
        CHECK(std::string(rnet_error_text(error)).find("RNET_PUBLISHER_OPTIONS_INIT") != std::string::npos);
        rnet_error_free(error);
        error = nullptr;
    }
    newer.known.struct_size = sizeof(std::size_t);
    CHECK(open(&newer) == RNET_OK);
    newer.known.struct_size = sizeof(Newer);
    CHECK(open(&newer) == RNET_OK);
    newer.unknown = 1;
    CHECK(open(&newer) == RNET_INVALID_ARGUMENT);
    const std::string at = "byte " + std::to_string(sizeof(rnet_publisher_options));
    CHECK(std::string(rnet_error_text(error)).find(at) != std::string::npos);
    rnet_error_free(error);

    auto subscriber = node.subscriber("/size");
    struct NewerCounts {
        rnet_subscriber_counts known;
        std::uint64_t unknown = 7;
    } counts{};
    CHECK(rnet_subscriber_get_counts(subscriber.handle(), &counts.known, nullptr) == RNET_INVALID_ARGUMENT);
    counts.known.struct_size = sizeof counts;
    CHECK(rnet_subscriber_get_counts(subscriber.handle(), &counts.known, nullptr) == RNET_OK && counts.unknown == 7);
    // A program with an older header knows fewer fields.
    counts.known.struct_size = offsetof(rnet_subscriber_counts, alive);
    counts.known.alive = 77;
    CHECK(rnet_subscriber_get_counts(subscriber.handle(), &counts.known, nullptr) == RNET_OK);
    CHECK(counts.known.alive == 77 && counts.known.behind == 0);
}

TEST("a forked child cannot use the objects of its parent, nor end them") {
    Domain domain;
    auto node = std::make_unique<rnet::Node>(domain.node());
    auto publisher = std::make_unique<rnet::Publisher<>>(node->publisher("/fork"));
    auto subscriber = std::make_unique<rnet::Subscriber<>>(node->subscriber("/fork"));
    std::atomic<int> called{0};
    auto subscription = std::make_unique<rnet::Subscription>(node->subscriber("/fork", [&](auto&) { ++called; }));
    publisher->wait_for_subscribers_for(2, limit);
    publisher->send("before");
    auto sample = std::make_unique<rnet::Sample<>>(subscriber->recv_for(limit));
    auto loan = std::make_unique<rnet::Loan<Bytes>>(publisher->loan(10'000));
    const int status = in_child([&] {
        const auto closed = [](const auto& result) { return !result && result.error().code() == Code::closed; };
        if (!closed(publisher->send("x", std::nothrow))) return 1;
        if (!closed(subscriber->recv(std::nothrow))) return 2;
        if (!closed(node->publisher("/y", std::nothrow))) return 3;
        if (!closed(loan->send(std::nothrow))) return 4;
        if (!closed(subscription->wait_for_publishers(1, std::nothrow))) return 5;
        node->close();
        subscriber->close();
        loan.reset();
        sample.reset();
        subscription.reset();
        subscriber.reset();
        publisher.reset();
        node.reset();
        auto own = domain.node("child");
        return own.publisher("/own", std::nothrow) ? 0 : 6;
    });
    CHECK(status == 0);
    publisher->send("after");
    CHECK(subscriber->recv_for(limit).text() == "after" && sample->text() == "before");
    CHECK(eventually([&] { return called == 2; }));
    loan->send();
}

}  // namespace

RNET_TEST_MAIN()
