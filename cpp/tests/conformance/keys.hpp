// The state and the parameters of an actor, and its steps on them: see keys.rs.
#pragma once

#include "common.hpp"

#include <rnet/param.hpp>
#include <rnet/rnet.hpp>
#include <rnet/state.hpp>

#include <optional>

class Keys {
public:
    explicit Keys(rnet::Node& node) : state_(rnet::State::open(node)), node_(node) {}

    json act(const json& step) {
        const auto [kind, given] = variant(step);
        if (kind == "Set") {
            const auto options = put_options(given.at("options"));
            return said({std::to_string(state_.set(text(given, "key"), value_of(given.at("value")), options))});
        } else if (kind == "Get") {
            return {{"Value", maybe(state_.get(text(given, "key")))}};
        } else if (kind == "Entry") {
            const auto entry = state_.entry(text(given, "key"));
            return {{"Entry", entry ? json_of(*entry) : json()}};
        } else if (kind == "Delete") {
            const json& if_revision = given.at("if_revision");
            const std::uint64_t revision = if_revision.is_null() ? 0 : if_revision.get<std::uint64_t>();
            return said({state_.erase(text(given, "key"), revision) ? "true" : "false"});
        } else if (kind == "Keys") {
            return said(state_.keys(text(given, "prefix")));
        } else if (kind == "Count") {
            const std::string key = text(given, "key");
            for (int times = given.at("times"); times > 0; --times) {
                state_.add(key);
                state_.update<std::int64_t>(key, [](std::optional<std::int64_t> value) { return *value + 1; });
            }
        } else if (kind == "Begin") {
            transaction_.emplace(state_.transaction());
        } else if (kind == "Read") {
            return {{"Value", maybe(transaction_->get(text(given, "key")))}};
        } else if (kind == "Write") {
            transaction_->set(text(given, "key"), value_of(given.at("value")));
        } else if (kind == "Commit") {
            return said({std::to_string(transaction_->commit())});
        } else if (kind == "Watch") {
            watch_.emplace(state_.watch(text(given, "prefix")));
        } else if (kind == "Changes") {
            json changes = json::array();
            for (std::size_t count = given.at("count"); count > 0; --count) {
                changes.push_back(json_of(watch_->recv_for(LONG)));
            }
            return {{"Changes", changes}};
        } else {
            return param(kind, given);
        }
        return said();
    }

private:
    json param(const std::string& kind, const json& given) {
        if (kind == "Declare") return declare(given.at("max"));
        if (kind == "ParamChanges") return reported_.at_least(given.at("at_least"));
        const bool is_gain = given.at("name") == "/gain";
        if (kind == "GetParam") {
            if (is_gain) return {{"Value", json::object({{"Float", gain_->get()}})}};
            return {{"Value", json::object({{"Str", mode_->get()}})}};
        } else if (kind == "SetParam") {
            const json& value = given.at("value");
            is_gain ? gain_->set(value.at("Float").get<double>()) : mode_->set(value.at("Str").get<std::string>());
        } else if (kind == "ResetParam") {
            is_gain ? gain_->reset() : mode_->reset();
        } else {
            give_up("unknown step of keys " + kind);
        }
        return said();
    }

    json declare(double max) {
        std::vector<std::string> refused;
        rnet::ParamOptions<double> gain;
        gain.default_value = 1.0;
        gain.min = 0.0;
        gain.max = max;
        gain.unit = "1/s";
        gain.on_refused = [&](const rnet::RefusedValue& value) { refused.push_back(value.value + " " + value.why); };
        gain.on_change = [this](double value) { reported_.add("gain " + std::to_string(value).substr(0, 3)); };
        gain_.emplace(rnet::Param<double>::declare(node_, "/gain", gain));
        rnet::ParamOptions<std::string> mode;
        mode.default_value = "idle";
        mode.choices = {"idle", "moving"};
        mode_.emplace(rnet::Param<std::string>::declare(node_, "/mode", mode));
        return said(refused);
    }

    static rnet::Value value_of(const json& given) {
        const auto& [kind, value] = variant(given);
        if (kind == "Bool") return value.get<bool>();
        if (kind == "Int") return value.get<std::int64_t>();
        if (kind == "Float") return value.get<double>();
        if (kind == "Str") return value.get<std::string>();
        if (kind == "Bytes") return rnet::Bytes(value.get<std::vector<std::uint8_t>>());
        if (kind == "Json") return rnet::Value::json(value.get<std::string>());
        std::vector<rnet::Value> items;
        for (const json& item : value) items.push_back(value_of(item));
        return kind == "List" ? rnet::Value::list(items) : rnet::Value::set(items);
    }

    static json json_of(const rnet::Value& value) {
        switch (value.kind()) {
        case rnet::ValueKind::boolean: return {{"Bool", *value.as<bool>()}};
        case rnet::ValueKind::integer: return {{"Int", *value.as<std::int64_t>()}};
        case rnet::ValueKind::floating: return {{"Float", *value.as<double>()}};
        case rnet::ValueKind::string: return {{"Str", value.text()}};
        case rnet::ValueKind::bytes:
            return {{"Bytes", std::vector<std::uint8_t>(value.bytes().begin(), value.bytes().end())}};
        case rnet::ValueKind::json: return {{"Json", value.text()}};
        case rnet::ValueKind::list: return {{"List", items_of(value)}};
        case rnet::ValueKind::set: return {{"Set", items_of(value)}};
        default: give_up("no step stores a " + std::string(value.type_name()));
        }
    }

    static json items_of(const rnet::Value& value) {
        json items = json::array();
        for (std::size_t at = 0; at < value.size(); ++at) items.push_back(json_of(value[at]));
        return items;
    }

    static json maybe(const std::optional<rnet::Value>& value) { return value ? json_of(*value) : json(); }

    static json json_of(const rnet::Entry& entry) {
        return {{"value", json_of(entry.value)},      {"revision", entry.revision},
                {"version", entry.version},           {"owner", entry.owner},
                {"durable", entry.durable},           {"expires", entry.ttl_left.has_value()},
                {"last_will", maybe(entry.last_will)}, {"last_will_delete", entry.last_will_delete}};
    }

    static json json_of(const rnet::Change& change) {
        return {{"key", change.key},
                {"value", change.entry ? json_of(change.entry->value) : json()},
                {"expired", change.expired ? json(*change.expired) : json()},
                {"initial", change.initial},
                {"skipped", change.skipped ? json(*change.skipped) : json()}};
    }

    static rnet::PutOptions put_options(const json& given) {
        rnet::PutOptions options;
        if (!given.at("if_revision").is_null()) options.if_revision = given.at("if_revision").get<std::uint64_t>();
        if (!given.at("ttl_ms").is_null()) options.ttl = milliseconds(given.at("ttl_ms"));
        if (!given.at("durable").is_null()) options.durable = given.at("durable").get<bool>();
        if (!given.at("last_will").is_null()) options.last_will = value_of(given.at("last_will"));
        options.last_will_delete = given.at("last_will_delete");
        options.change_type = given.at("change_type");
        return options;
    }

    rnet::State state_;
    rnet::Node& node_;
    Words reported_;
    std::optional<rnet::Watch> watch_;
    std::optional<rnet::Transaction> transaction_;
    std::optional<rnet::Param<double>> gain_;
    std::optional<rnet::Param<std::string>> mode_;
};
