/*
 * The C API of robot-net. Written by `cargo xtask c-header --write` from crates/rnet-c; do not edit.
 *
 * Link with -lrnet (librnet.so.1), or with librnet.a and -lpthread -ldl -lm. C++ has its own headers in rnet/.
 *
 * Functions     A function that can fail returns an rnet_code and has `rnet_error **error` as its last
 *               argument. If that is not null, a failure stores an error there, with the text for people: free
 *               it with rnet_error_free(). Results go through `out` pointers.
 * Values        Names and texts are NUL-terminated UTF-8; data is an rnet_bytes, a view that is not owned.
 *               Durations are in ns: RNET_FOREVER has no limit, 0 does not wait. In options, 0 is the default.
 * Ownership     What rnet_x_new() or an `out` pointer gives is the caller's: free it with rnet_x_free(). Null may
 *               be freed. Objects may be freed in any order and by any thread, if no other thread is about to use
 *               them. A `const char *` belongs to the object that it comes from. A borrowed rnet_sample is valid
 *               until the next call with its subscriber; rnet_sample_keep() makes it owned.
 * Threads       An exclusive object (publisher, subscriber, ...) serves one thread at a time; a second one gets
 *               RNET_WRONG_THREAD. Any number of threads may use a shared object (node, subscription, ...). The
 *               comment of each type says which it is.
 * Closing       rnet_node_close() closes the node with all its objects: waits end, and calls fail with
 *               RNET_CLOSED. A node that is freed but not closed lives on in its objects. In a forked child, the
 *               objects of the parent answer RNET_CLOSED.
 * Options       Initialise each struct of options or results with RNET_<NAME>_INIT: it holds its size, so that
 *               programs run with later versions of the library, which add members at the end.
 * Callbacks     A callback runs on a thread of the node, one at a time for each object, and gets its `context`.
 *               `free_context` is called once after the last call, also if the registration fails. Callbacks
 *               must return: no longjmp() and no C++ exception.
 */

#ifndef RNET_H
#define RNET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** Version of this header. rnet_version() returns that of the library. */
#define RNET_VERSION "0.1.0"
#define RNET_VERSION_MAJOR 0
#define RNET_VERSION_MINOR 1
#define RNET_VERSION_PATCH 0

/** Longest domain id, in bytes. */
#define RNET_MAX_DOMAIN_LEN_BYTES 32

/** Longest key of the state, with its leading `/`, in bytes. */
#define RNET_MAX_KEY_LEN_BYTES 255

/** Largest message, in bytes (1 GiB). */
#define RNET_MAX_MESSAGE_LEN_BYTES 1073741824

/** Longest node name, with its leading `/`, in bytes. */
#define RNET_MAX_NODE_NAME_LEN_BYTES 200

/** Samples that one reader may hold (pin) at the same time. */
#define RNET_MAX_PINS_PER_READER 64

/** Largest alignment of a plain type, in bytes. */
#define RNET_MAX_PLAIN_ALIGN_BYTES 8

/** Longest topic name, with its leading `/`, in bytes. */
#define RNET_MAX_TOPIC_LEN_BYTES 255

/** Keys that one transaction may read and write. */
#define RNET_MAX_TRANSACTION_KEYS 1024

/** Deepest nesting of lists and JSON in a value of the state. */
#define RNET_MAX_VALUE_DEPTH 64

/** Longest value of a key of the state, in bytes (64 MiB). */
#define RNET_MAX_VALUE_LEN_BYTES 67108864

/** A longer message is read in its publisher's memory: see rnet_sample. */
#define RNET_MAX_INLINE_LEN_BYTES 4096

/** Waits without a limit. */
#define RNET_FOREVER INT64_MAX

/**
 * The outcome of a call. A code keeps its number in all later versions.
 *
 * Codes from 1 to 99 are the errors of robot-net in every language (docs/guide/errors.md); codes from 100 on
 * do not exist in Rust.
 */
typedef enum rnet_code {
  /** The call succeeded. */
  RNET_OK = 0,
  /** The name of a topic, node, domain or key is invalid. */
  RNET_BAD_NAME = 1,
  /** The message exceeds the limit of the topic or of robot-net. Nothing was sent. */
  RNET_MESSAGE_TOO_LARGE = 2,
  /** Publisher and subscriber describe the messages of the topic differently. */
  RNET_INCOMPATIBLE_TYPE = 3,
  /** The subscriber requests more than the publisher offers. */
  RNET_INCOMPATIBLE_QOS = 4,
  /** A reliable subscriber is behind. The message was not sent. */
  RNET_FULL = 5,
  /** The time limit is over. */
  RNET_TIMEOUT = 6,
  /** A reliable publisher detached this subscriber because it made no progress. */
  RNET_DETACHED = 7,
  /** The process of a peer exited without closing its node. */
  RNET_PEER_LOST = 8,
  /** Shared memory for a message is not available. */
  RNET_OUT_OF_MEMORY = 9,
  /** A limit of robot-net is reached. */
  RNET_LIMIT_REACHED = 10,
  /** The subscriber already holds the maximum number of large samples. */
  RNET_TOO_MANY_PINS = 11,
  /** Another live node of the domain has this name. */
  RNET_NAME_TAKEN = 12,
  /** The user may not access a file or directory of the domain. */
  RNET_NO_PERMISSION = 13,
  /** Another version of robot-net created a file in shared memory. */
  RNET_LAYOUT_VERSION = 14,
  /** A peer's shared memory contains data that no correct peer writes. */
  RNET_CORRUPT = 15,
  /** One message could not be decoded. It is skipped and counted. */
  RNET_MALFORMED = 16,
  /** The object, or the node that it belongs to, was closed. */
  RNET_CLOSED = 17,
  /** Another thread, or a signal, ended the wait. */
  RNET_INTERRUPTED = 18,
  /** Contradictory or invalid quality-of-service settings. */
  RNET_BAD_QOS = 19,
  /** A value does not match its type or is out of range. */
  RNET_BAD_VALUE = 20,
  /** A key of the state was written since it was read. Nothing was changed. */
  RNET_CONFLICT = 21,
  /** A key of the state holds values of another type. Nothing was changed. */
  RNET_STATE_TYPE = 22,
  /** State could not be written to disk. */
  RNET_STORAGE = 23,
  /** The server exited before it answered. The call may or may not have run. */
  RNET_SERVER_LOST = 24,
  /** The home host of a key of the state does not answer. */
  RNET_HOME_AWAY = 25,
  /** The handler of a service failed. */
  RNET_CALL_FAILED = 26,
  /** The server is busy. The call was not started. */
  RNET_REFUSED = 27,
  /** A driver lacks authority over a command. */
  RNET_NOT_IN_FORCE = 28,
  /** Another node already receives this command. */
  RNET_RECEIVER_EXISTS = 29,
  /** The call was cancelled. */
  RNET_CANCELLED = 30,
  /** Messages of a call were lost. */
  RNET_CALL_LOST = 31,
  /** The operating system refused an operation. */
  RNET_IO = 32,
  /** An error that this version of the C library does not know; its text describes it. */
  RNET_OTHER = 99,
  /** Another thread is using the object, and only one may use it at a time. */
  RNET_WRONG_THREAD = 100,
  /** A fault of robot-net itself. The object accepts only free from now on. */
  RNET_INTERNAL = 101,
  /** An argument is null, not UTF-8, or an option struct is not initialised. */
  RNET_INVALID_ARGUMENT = 102,
  /** A recording did not start, or ended early. */
  RNET_RECORD_FAILED = 103,
  /** A recording, or a part of it, cannot be read, or lacks the topic. */
  RNET_READ_FAILED = 104,
} rnet_code;

/** Why a receiver has fallen back, or why the last driver lost authority. */
typedef enum rnet_fallback_reason {
  /** It has not: a command was applied. */
  RNET_REASON_NONE = 0,
  /** It was opened. */
  RNET_REASON_OPENED = 1,
  /** A driver has authority, and no command was applied yet. */
  RNET_REASON_GRANTED = 2,
  /** No command arrived within the deadline. */
  RNET_REASON_DEADLINE = 3,
  /** The lease of the driver expired. */
  RNET_REASON_EXPIRED = 4,
  /** The driver released its authority. */
  RNET_REASON_RELEASED = 5,
  /** The process or host of the driver is gone. */
  RNET_REASON_DRIVER_LOST = 6,
  /** A driver of a higher priority took authority. */
  RNET_REASON_PREEMPTED = 7,
  /** Applying a command took longer than the deadline. */
  RNET_REASON_OVERRUN = 8,
  /** The function that applies commands failed. */
  RNET_REASON_PANICKED = 9,
  /** The receiver closes. */
  RNET_REASON_CLOSED = 10,
  /** A reason that this version does not know. */
  RNET_REASON_UNKNOWN = 11,
} rnet_fallback_reason;

/** What has happened to a match. */
typedef enum rnet_match_kind {
  /** An event that this version of the C library does not know. */
  RNET_MATCH_OTHER = 0,
  /** A peer has joined and is served. */
  RNET_MATCH_MATCHED = 1,
  /** A peer has closed its end. */
  RNET_MATCH_UNMATCHED = 2,
  /** The process of a peer has died. */
  RNET_MATCH_LOST = 3,
  /** A peer that represents endpoints of another host represents more or fewer than before. */
  RNET_MATCH_CHANGED = 4,
  /** A subscriber waits for admission by a publisher that defers it. */
  RNET_MATCH_ADMISSION_REQUESTED = 5,
  /** A peer of the same topic is incompatible: see rnet_match_event_error(). */
  RNET_MATCH_INCOMPATIBLE = 6,
} rnet_match_kind;

/** What has happened to a node. */
typedef enum rnet_node_change {
  /** An event that this version of the C library does not know. */
  RNET_NODE_OTHER = 0,
  /** It has joined the domain. */
  RNET_NODE_JOINED = 1,
  /** It has left by closing. */
  RNET_NODE_LEFT = 2,
  /** Its process has died. */
  RNET_NODE_DIED = 3,
} rnet_node_change;

/** What has happened to an endpoint. */
typedef enum rnet_endpoint_kind {
  /** An event that this version of the C library does not know. */
  RNET_ENDPOINT_OTHER = 0,
  /** It exists: it existed when the callback was registered, or was opened since. */
  RNET_ENDPOINT_OPENED = 1,
  /** It represents more or fewer endpoints of another host than before. */
  RNET_ENDPOINT_CHANGED = 2,
  /** It was closed. */
  RNET_ENDPOINT_CLOSED = 3,
  /** The process of its node has died. */
  RNET_ENDPOINT_LOST = 4,
} rnet_endpoint_kind;

/** Why a call, a goal or a job was cancelled. */
typedef enum rnet_cancel_reason {
  /** It is wanted, or it has ended. */
  RNET_CANCEL_NONE = 0,
  /** Its caller cancelled it. */
  RNET_CANCEL_CALLER = 1,
  /** Its caller is gone. */
  RNET_CANCEL_CALLER_GONE = 2,
  /** Its time limit is over. */
  RNET_CANCEL_TIMED_OUT = 3,
  /** A newer goal replaces it. */
  RNET_CANCEL_PREEMPTED = 4,
  /** The server closes. */
  RNET_CANCEL_SERVER_CLOSING = 5,
  /** An operator or a supervisor cancelled all goals. */
  RNET_CANCEL_OPERATOR = 6,
  /** A reason that this version does not know. */
  RNET_CANCEL_UNKNOWN = 7,
} rnet_cancel_reason;

/** What an action does with a goal that arrives while another one runs. */
typedef enum rnet_goal_policy {
  /** Refuses it: its caller gets RNET_REFUSED. */
  RNET_GOAL_REJECT = 0,
  /** Queues it; see `queue` of rnet_action_options. */
  RNET_GOAL_QUEUE = 1,
  /**
   * Cancels the earlier goals, with the reason RNET_CANCEL_PREEMPTED. The new one begins when the handler
   * of the running one has returned.
   */
  RNET_GOAL_REPLACE = 2,
} rnet_goal_policy;

/** What a receiver does when no command is in force. */
typedef enum rnet_fallback {
  /** Calls `on_fallback`. */
  RNET_FALLBACK_HANDLER = 0,
  /** Applies `fallback_message`. */
  RNET_FALLBACK_MESSAGE = 1,
  /** Applies the default message of the type: zero for velocities and torques. */
  RNET_FALLBACK_ZERO = 2,
  /** Applies the last command again, for positions; nothing before the first. */
  RNET_FALLBACK_HOLD = 3,
} rnet_fallback;

/** What has happened to a node. */
typedef enum rnet_watched_change {
  /** It has joined the domain. */
  RNET_WATCHED_JOINED = 1,
  /** It has closed. */
  RNET_WATCHED_LEFT = 2,
  /** Its process has died without closing it. */
  RNET_WATCHED_DIED = 3,
} rnet_watched_change;

/** Severity of a log line. */
typedef enum rnet_log_level {
  /** Details for developers. */
  RNET_LOG_DEBUG = 1,
  /** As expected. */
  RNET_LOG_INFO = 2,
  /** Unexpected, but the work continues. */
  RNET_LOG_WARNING = 3,
  /** Something could not be done. */
  RNET_LOG_ERROR = 4,
  /** The program ends. */
  RNET_LOG_FATAL = 5,
} rnet_log_level;

/** What a send of a reliable publisher does while a subscriber is full. */
typedef enum rnet_on_full {
  /** Waits for `full_timeout_ns`, then fails with RNET_FULL. */
  RNET_ON_FULL_WAIT = 0,
  /** Fails with RNET_FULL at once. */
  RNET_ON_FULL_REFUSE = 1,
  /** Waits; a subscriber that reads nothing for `full_timeout_ns` is detached. */
  RNET_ON_FULL_DETACH = 2,
} rnet_on_full;

/** Compression of a recording. */
typedef enum rnet_compression {
  /** Small files. */
  RNET_COMPRESSION_ZSTD = 0,
  /** Less processor time than zstd. */
  RNET_COMPRESSION_LZ4 = 1,
  /** Uncompressed, for incompressible data. */
  RNET_COMPRESSION_NONE = 2,
} rnet_compression;

/** The kind of a value. */
typedef enum rnet_value_kind {
  /** No value: a null pointer. */
  RNET_VALUE_NONE = 0,
  /** A boolean. */
  RNET_VALUE_BOOL = 1,
  /** A 64-bit integer. */
  RNET_VALUE_INT = 2,
  /** A double. */
  RNET_VALUE_FLOAT = 3,
  /** UTF-8 text. */
  RNET_VALUE_STRING = 4,
  /** Bytes without a meaning for robot-net. */
  RNET_VALUE_BYTES = 5,
  /** JSON text. */
  RNET_VALUE_JSON = 6,
  /** Values of any kinds except messages. */
  RNET_VALUE_LIST = 7,
  /** Distinct booleans, numbers, strings and bytes, sorted. */
  RNET_VALUE_SET = 8,
  /** A message, with its type. */
  RNET_VALUE_MESSAGE = 9,
  /** A value that a faulty program has written; its bytes are the fault as text. It cannot be stored. */
  RNET_VALUE_UNREADABLE = 10,
} rnet_value_kind;

/** Why messages are lost. */
typedef enum rnet_loss_cause {
  /** The subscriber was too slow. */
  RNET_LOSS_OVERRUN = 0,
  /** Lost between hosts. */
  RNET_LOSS_LINK = 1,
  /** The publisher restarted. */
  RNET_LOSS_RESTART = 2,
  /** The subscriber was detached. */
  RNET_LOSS_DETACHED = 3,
} rnet_loss_cause;

/** How a subscriber waits for the next message. */
typedef enum rnet_wait {
  /** Spins for as long as a message is likely, then sleeps. */
  RNET_WAIT_ADAPTIVE = 0,
  /** Spins: lowest latency, one processor core. */
  RNET_WAIT_SPIN = 1,
  /** Sleeps at once: least processor time. */
  RNET_WAIT_BLOCK = 2,
} rnet_wait;

/** The lane of a topic. */
typedef enum rnet_lane {
  /** That of the publisher; for a publisher, bulk. */
  RNET_LANE_DEFAULT = 0,
  /** The lane of ordinary messages. */
  RNET_LANE_BULK = 1,
  /** The lane that bulk messages do not delay. */
  RNET_LANE_URGENT = 2,
} rnet_lane;

/** The kind of a number in a plain struct. */
typedef enum rnet_primitive {
  /** Not a number: the field is a struct, described by `type`. */
  RNET_STRUCT = 0,
  /** uint8_t */
  RNET_U8 = 1,
  /** uint16_t */
  RNET_U16 = 2,
  /** uint32_t */
  RNET_U32 = 3,
  /** uint64_t */
  RNET_U64 = 4,
  /** int8_t */
  RNET_I8 = 5,
  /** int16_t */
  RNET_I16 = 6,
  /** int32_t */
  RNET_I32 = 7,
  /** int64_t */
  RNET_I64 = 8,
  /** float */
  RNET_F32 = 9,
  /** double */
  RNET_F64 = 10,
  /** bool, one byte of 0 or 1 */
  RNET_BOOL = 11,
} rnet_primitive;

/** Sends goals to one action. Any thread may use it, with any number of goals at a time. */
typedef struct rnet_action_client rnet_action_client;

/** A callback for all topics that match a pattern. Any thread may use it. */
typedef struct rnet_any_subscription rnet_any_subscription;

/** Bytes or text that the library has made. Any thread may use it. */
typedef struct rnet_buffer rnet_buffer;

/** A change of a key, which rnet_change_read() returns. It does not change: any thread may read it. */
typedef struct rnet_change rnet_change;

/** Calls one service. Any thread may use it, with any number of calls at a time. */
typedef struct rnet_client rnet_client;

/** The receiving end of a command. Any thread may use it. */
typedef struct rnet_command rnet_command;

/** Deadline periods in which a publisher sent nothing. It is valid until the callback returns. */
typedef struct rnet_deadline_event rnet_deadline_event;

/**
 * A domain, inspected from outside: its nodes do not see it and are not slowed by it. One thread at a time may use
 * it; a second one gets RNET_WRONG_THREAD.
 */
typedef struct rnet_domain rnet_domain;

/**
 * The sending end of a command, with authority until that ends. One thread at a time may use it; a second
 * one gets RNET_WRONG_THREAD.
 */
typedef struct rnet_driver rnet_driver;

/** A publisher or subscriber of the domain was opened or closed. It is valid until the callback returns. */
typedef struct rnet_endpoint_event rnet_endpoint_event;

/**
 * A key of the state with its value and its metadata, which rnet_entry_read() returns. It does not change:
 * any thread may read it.
 */
typedef struct rnet_entry rnet_entry;

/** Entries, sorted by key. Any thread may read it. */
typedef struct rnet_entry_list rnet_entry_list;

/**
 * An error: its code, its text, and the topic and node that it is about. Owned by the caller, who frees it with
 * rnet_error_free(). Any thread may use it.
 */
typedef struct rnet_error rnet_error;

/** Errors, oldest first. Freed by the caller with rnet_error_list_free(). Any thread may read it. */
typedef struct rnet_error_list rnet_error_list;

/**
 * Follows a topic from outside, with all its publishers. Publishers do not see it and are not slowed by it; what it
 * reads too slowly is counted as missed. One thread at a time may use it; a second one gets RNET_WRONG_THREAD.
 */
typedef struct rnet_follower rnet_follower;

/** A goal that was sent. Any thread may use it. */
typedef struct rnet_goal rnet_goal;

/**
 * A registered callback. rnet_guard_free() removes it and waits for a running call, except within a callback;
 * rnet_guard_detach() lets it run until its object is closed. Any thread may use it.
 */
typedef struct rnet_guard rnet_guard;

/** A job that a worker has received. One thread at a time may use it. */
typedef struct rnet_job rnet_job;

/** A publisher has become alive, or is no longer alive. It is valid until the callback returns. */
typedef struct rnet_liveliness_event rnet_liveliness_event;

/** Memory for a message, which the user fills in place and sends. One thread at a time may use it. */
typedef struct rnet_loan rnet_loan;

/**
 * Counts messages that the program could not decode. Any thread may use it, also after its subscriber is closed.
 */
typedef struct rnet_malformed_counter rnet_malformed_counter;

/** A match change of a publisher or subscriber. It is valid until the callback returns. */
typedef struct rnet_match_event rnet_match_event;

/**
 * A named participant of a domain. Any thread may use it.
 *
 * Its endpoints keep it alive after rnet_node_free(); rnet_node_close() closes them all.
 */
typedef struct rnet_node rnet_node;

/** A node has joined, left or died. It is valid until the callback returns. */
typedef struct rnet_node_event rnet_node_event;

/**
 * Watches the nodes of a domain from outside. One thread at a time may use it; a second one gets RNET_WRONG_THREAD.
 */
typedef struct rnet_node_watcher rnet_node_watcher;

/** A parameter of a node. Any thread may use it. Its value outlives the node. */
typedef struct rnet_param rnet_param;

/** Parameters, sorted by key. Any thread may read it. */
typedef struct rnet_param_list rnet_param_list;

/** Publishers or subscribers. Freed by the caller with rnet_peer_list_free(). Any thread may read it. */
typedef struct rnet_peer_list rnet_peer_list;

/** A call in progress. Any thread may use it. */
typedef struct rnet_pending rnet_pending;

/** Sends messages on one topic. One thread at a time may use it; a second one gets RNET_WRONG_THREAD. */
typedef struct rnet_publisher rnet_publisher;

/** A worker of a work queue, which has one job at a time. Any thread may use it. */
typedef struct rnet_puller rnet_puller;

/** The sending end of a work queue. Any thread may use it. */
typedef struct rnet_pusher rnet_pusher;

/**
 * Keeps a loop of the user's thread at a rate. One thread at a time may use it; a second one gets RNET_WRONG_THREAD.
 */
typedef struct rnet_rate rnet_rate;

/**
 * Messages of a recording, in the order in which they were recorded. One thread at a time may use it; a second one
 * gets RNET_WRONG_THREAD.
 */
typedef struct rnet_recorded_messages rnet_recorded_messages;

/**
 * Records a domain to MCAP files, from outside: publishers neither wait for it nor see it. One thread at a time may
 * use it; a second one gets RNET_WRONG_THREAD.
 */
typedef struct rnet_recorder rnet_recorder;

/** The progress or the result of a recording. Any thread may use it. */
typedef struct rnet_recorder_report rnet_recorder_report;

/** An open recording. Any thread may use it. Its iterators keep it open after rnet_recording_free(). */
typedef struct rnet_recording rnet_recording;

/**
 * What the handler of a service, of an action or of a work queue gets. Valid until the handler returns; only
 * the thread of the handler may use it.
 */
typedef struct rnet_request rnet_request;

/**
 * A received message: its bytes and its metadata.
 *
 * A *borrowed* sample belongs to a subscriber or a callback: it is valid until the next receive from the
 * subscriber, or until the callback returns, and is never freed by the user. An *owned* sample, from
 * rnet_sample_keep() or a function that says so, is valid until rnet_sample_free(), also after its subscriber is
 * closed and freed. Any thread may read an owned sample. The samples of calls have no metadata.
 *
 * Bytes are at least 8-byte aligned. Those of at most 4096 are a private copy. Longer ones are in the publisher's
 * memory, which is not reused while the sample is valid; but a faulty publisher could still write to it, so that a
 * decoder of such bytes must be given a copy of them.
 */
typedef struct rnet_sample rnet_sample;

/** The server of a service, of an action, or of a work queue with a handler. Any thread may use it. */
typedef struct rnet_service rnet_service;

/** The nodes and endpoints of a domain at one time. Any thread may use it. */
typedef struct rnet_snapshot rnet_snapshot;

/**
 * Keys that hold values: of the node's domain, of another host, or the local copy of keys of another host. Any thread may
 * use it. Calls for the domain never wait, except for the disk if a key is durable; for another host see
 * rnet_node_state_of().
 *
 * In addition to those that they list, its calls have the errors RNET_BAD_NAME for an invalid key,
 * RNET_BAD_VALUE for an unreadable value, and RNET_CLOSED. A call that the state of another host or a local copy does not
 * have fails with RNET_INVALID_ARGUMENT.
 */
typedef struct rnet_state rnet_state;

/**
 * What a subscriber has counted, by publisher. Freed by the caller with rnet_stats_list_free(). Any thread may read
 * it.
 */
typedef struct rnet_stats_list rnet_stats_list;

/**
 * Receives the messages of one topic. One thread at a time may use it; a second one gets RNET_WRONG_THREAD.
 */
typedef struct rnet_subscriber rnet_subscriber;

/** A subscriber whose messages go to a callback. Any thread may use it. */
typedef struct rnet_subscription rnet_subscription;

/** A running timer. Any thread may use it. */
typedef struct rnet_timer rnet_timer;

/**
 * Reads and writes of several keys, of which all take effect at the commit, or none. One thread at a time
 * may use it; a second one gets RNET_WRONG_THREAD.
 */
typedef struct rnet_transaction rnet_transaction;

/**
 * The type of messages: raw bytes, a plain struct or a protobuf message. Any thread may use it. Endpoints copy it:
 * it may be freed once they are open.
 */
typedef struct rnet_type rnet_type;

/**
 * A value of the state, of one of the kinds rnet_value_kind. It does not change: any thread may read it.
 * Functions that store it copy it. A value that rnet_value_new() or a function that says so returns
 * belongs to the caller, who frees it with rnet_value_free(); one within an entry, a list or a callback
 * belongs to that.
 */
typedef struct rnet_value rnet_value;

/**
 * Waits until one of several subscribers, watches and rates of a node is ready. One thread at a time waits;
 * any thread may attach, detach and interrupt, also during a wait.
 */
typedef struct rnet_wait_set rnet_wait_set;

/**
 * Reports the values of the keys under a prefix, then each change, in order. A slow reader gets the newest
 * value of each key, and the number of values that it missed. One thread at a time may use it; a second one
 * gets RNET_WRONG_THREAD.
 */
typedef struct rnet_watch rnet_watch;

/**
 * Options of rnet_action_new() and rnet_action_client_new(). Initialise it with RNET_ACTION_OPTIONS_INIT; 0
 * and null mean the default.
 */
typedef struct rnet_action_options {
  /** sizeof(rnet_action_options), set by the initialiser. */
  size_t struct_size;
  /** The type of goals; default: raw bytes. */
  const struct rnet_type *goal_type;
  /** The type of feedback; default: raw bytes. */
  const struct rnet_type *feedback_type;
  /** The type of results; default: raw bytes. */
  const struct rnet_type *result_type;
  /** What the server does with a goal while another one runs, an rnet_goal_policy. */
  int32_t policy;
  /** For RNET_GOAL_QUEUE: how many goals may wait, 1 to 65,536. It has no default. */
  uint32_t queue;
} rnet_action_options;

/**
 * Called for each request, goal or job, on a thread of the server. If the server was opened with `at_once`,
 * several threads call it at a time. It may block, and call other services.
 *
 * Before it returns, it answers: see rnet_request_answer(), rnet_request_send(), rnet_request_fail(). A call
 * that it does not answer fails with RNET_CALL_FAILED, of the kind "not_answered"; a job is then
 * acknowledged.
 */
typedef void (*rnet_request_function)(struct rnet_request *request, void *context);

/** Frees the context of a callback. */
typedef void (*rnet_free_function)(void *context);

/** Options of a call or a goal. Initialise it with RNET_CALL_OPTIONS_INIT; 0 and null mean the default. */
typedef struct rnet_call_options {
  /** sizeof(rnet_call_options), set by the initialiser. */
  size_t struct_size;
  /**
   * Time limit in ns, from now until the last reply, including the wait for a server; default: that of the
   * client, for a goal none; RNET_FOREVER: none.
   */
  int64_t timeout_ns;
  /** Calls with the same key go to the same server, of those that the client knows; default: any server. */
  const char *key;
  /** For rnet_client_start(): whether the call receives all replies of a stream, instead of one. */
  bool stream;
  /** Space for options of new versions; 0. */
  uint8_t reserved[7];
} rnet_call_options;

/** Counters of a client. */
typedef struct rnet_client_stats {
  /** sizeof(rnet_client_stats), set by the caller: see RNET_CLIENT_STATS_INIT. */
  size_t struct_size;
  /** Calls that were started. */
  uint64_t calls;
  /** Calls that are open now. */
  uint64_t open;
  /** Servers that would accept a call now; for an action also those that would refuse a goal. */
  uint64_t servers;
  /** Answers that were dropped because their call had ended. */
  uint64_t late;
  /** Calls that were sent to another server because one refused. */
  uint64_t rerouted;
  /** Feedback that was skipped because too much waited for its reader. */
  uint64_t feedback_skipped;
  /** Feedback that did not arrive. */
  uint64_t feedback_lost;
} rnet_client_stats;

/**
 * Options of rnet_subscriber_new(). Initialise it with RNET_SUBSCRIBER_OPTIONS_INIT; 0 and null mean the default.
 */
typedef struct rnet_subscriber_options {
  /** sizeof(rnet_subscriber_options), set by the initialiser. */
  size_t struct_size;
  /**
   * The type of the messages, which must be compatible with the publisher's; default: every message, as bytes.
   */
  const struct rnet_type *message_type;
  /**
   * Keeps the last n unread messages of each publisher and skips older ones; default 10, or all if reliable.
   */
  uint32_t keep_last;
  /** Whether to keep all unread messages that the publisher's log still holds. */
  bool keep_all;
  /** Whether reliable publishers wait for this subscriber. */
  bool reliable;
  /** Whether to receive first the messages that publishers keep for late subscribers. */
  bool transient_local;
  /** How to wait, an rnet_wait. */
  int32_t wait;
  /** The lane that publishers must have, an rnet_lane; default: any. */
  int32_t lane;
  /** Requests a message of each publisher at least this often, in ns. */
  int64_t deadline_ns;
  /** Requests publishers that show that they are alive at least this often, in ns. */
  int64_t liveliness_lease_ns;
} rnet_subscriber_options;

/** Called for each message, on the node's thread for the lane of the topic. The sample is borrowed. */
typedef void (*rnet_sample_function)(const struct rnet_sample *sample, void *context);

/** Called for an error of one publisher, or of one message. The error belongs to the library. */
typedef void (*rnet_error_function)(const struct rnet_error *error, void *context);

/** A view of bytes: not owned, and not terminated by NUL. `data` may be null if `len` is 0. */
typedef struct rnet_bytes {
  /** The first byte. */
  const uint8_t *data;
  /** Number of bytes. */
  size_t len;
} rnet_bytes;

/**
 * Options of rnet_command_new(). Initialise it with RNET_COMMAND_OPTIONS_INIT; 0 and null mean the default.
 */
typedef struct rnet_command_options {
  /** sizeof(rnet_command_options), set by the initialiser. */
  size_t struct_size;
  /** The type of the commands; default: raw bytes. */
  const struct rnet_type *message_type;
  /** Longest time between two commands, in ns: 1 ms to 1 h; default 100 ms. */
  int64_t deadline_ns;
  /** What to do when no command is in force, an rnet_fallback; default: RNET_FALLBACK_HANDLER. */
  int32_t fallback;
  /** For RNET_FALLBACK_MESSAGE: the message. */
  struct rnet_bytes fallback_message;
  /** The topic on which valid commands and the fallback are published, instead of `apply`; default: none. */
  const char *forward;
} rnet_command_options;

/**
 * Applies a command, or the fallback message. The bytes are 8-byte aligned, and valid until it returns.
 *
 * It runs on a thread of its own, with real-time priority if permitted, and should return well within the
 * deadline. If it takes longer, or returns false because it failed, the fallback follows. To say why it
 * failed, it calls rnet_report_callback_error() first.
 */
typedef bool (*rnet_apply_function)(struct rnet_bytes command, void *context);

/** Called to fall back, on the thread that applies commands. False: it failed. */
typedef bool (*rnet_fallback_function)(enum rnet_fallback_reason reason, void *context);

/** Counters of a receiver. */
typedef struct rnet_command_stats {
  /** sizeof(rnet_command_stats), set by the caller: see RNET_COMMAND_STATS_INIT. */
  size_t struct_size;
  /** Commands that were applied. */
  uint64_t applied;
  /** Commands that were older than the deadline. */
  uint64_t late;
  /** Commands that were already applied, or older than an applied one. */
  uint64_t repeated;
  /** Commands of drivers whose authority had ended. */
  uint64_t superseded;
  /** Commands of nodes that never had the authority that they claimed. */
  uint64_t unauthorised;
  /** Commands that could not be decoded. */
  uint64_t malformed;
  /** Commands that were passed over for a newer one, or lost in transit. */
  uint64_t skipped;
  /** How often it has fallen back, except at opening and closing. */
  uint64_t fallbacks;
  /** How often the function that applies commands, or the fallback, failed. */
  uint64_t panics;
  /** How often applying a command took longer than the deadline. */
  uint64_t overruns;
} rnet_command_stats;

/** The state of a receiver at one moment. New versions of the library add fields at its end. */
typedef struct rnet_command_status {
  /** The node of the driver with authority; "" without one. */
  const char *driver;
  /** The priority of that driver. */
  int32_t priority;
  /** The number of its authority, as in rnet_driver_number(); 0 without one. */
  uint64_t number;
  /** Whether commands are applied; false after a fallback. */
  bool in_force;
  /** Whether the last fallback failed: the robot may not be safe. */
  bool fallback_failed;
  /** Why it is in this state. */
  enum rnet_fallback_reason reason;
} rnet_command_status;

/**
 * Options of rnet_driver_take(). Initialise it with RNET_DRIVER_OPTIONS_INIT; 0 and null mean the default.
 */
typedef struct rnet_driver_options {
  /** sizeof(rnet_driver_options), set by the initialiser. */
  size_t struct_size;
  /** The type of the commands; default: raw bytes. */
  const struct rnet_type *message_type;
  /** The driver takes authority from drivers of a lower priority, up to 2,147,483,646; default 0. */
  int32_t priority;
  /**
   * Whether lost authority is requested again by send, renew and in_force. Only if the robot may resume by
   * itself.
   */
  bool auto_retake;
  /** Whether authority lasts until the lease expires even if this process dies first, as for a robot stop. */
  bool outlasts_driver;
  /** How long authority lasts after the last command, in ns: 1 ms to 1 h; default 200 ms. */
  int64_t lease_ns;
  /** How long take and retake wait for a receiver, in ns; default 10 s; RNET_FOREVER: without a limit. */
  int64_t timeout_ns;
} rnet_driver_options;

/** A message that a follower has read. New versions of the library add fields at its end. */
typedef struct rnet_followed_message {
  /** The topic. */
  const char *topic;
  /** Node of the publisher. */
  const char *node;
  /** Name of its type; "" for raw bytes. */
  const char *type_name;
  /** Id of the publisher. */
  uint64_t publisher;
  /** Number of the message, counted by its publisher from 0. */
  uint64_t seq;
  /** When it was sent, in ns of CLOCK_MONOTONIC. */
  uint64_t sent_ns;
  /** The time of its source in ns since 1970 UTC; 0 if its publisher has not set it. */
  int64_t source_ns;
  /** Its correlation with another message; 0 if its publisher has not set one. */
  uint64_t correlation;
  /** Messages that the follower missed before this one because it was too slow, of all publishers. */
  uint64_t missed;
  /** Its bytes. They may have any alignment. */
  struct rnet_bytes data;
} rnet_followed_message;

/** A node that has joined, left or died. New versions of the library add fields at its end. */
typedef struct rnet_watched_node {
  /** Its name: "/arm"; on another host "@host/arm". */
  const char *node;
  /** What has happened to it, an rnet_watched_change. */
  int32_t change;
} rnet_watched_node;

/** Called for each match change, on the node's thread for the bulk lane. */
typedef void (*rnet_match_function)(const struct rnet_match_event *event, void *context);

/** Called for missed deadlines, on the node's thread for the bulk lane. */
typedef void (*rnet_deadline_function)(const struct rnet_deadline_event *event, void *context);

/** Called for each change of liveliness, on the node's thread for the bulk lane. */
typedef void (*rnet_liveliness_function)(const struct rnet_liveliness_event *event, void *context);

/** Callbacks for events of an endpoint. Initialise it with RNET_EVENT_CALLBACKS_INIT; null: none. */
typedef struct rnet_event_callbacks {
  /** sizeof(rnet_event_callbacks), set by the initialiser. */
  size_t struct_size;
  /** Called for each match change. */
  rnet_match_function on_match;
  /**
   * Of a publisher: called when a period of its deadline passes without a message. The first period starts with
   * the first message. Of a subscriber: called when a publisher has sent nothing for a period of the subscriber's
   * deadline. The first period of each publisher starts with its first message. A publisher whose process has died
   * has missed its deadline at once, for the last time; one that closes has missed none.
   */
  rnet_deadline_function on_deadline;
  /** Called when a publisher becomes alive, or is no longer alive; not for publishers. */
  rnet_liveliness_function on_liveliness;
} rnet_event_callbacks;

/** Called when a node joins, leaves or dies, on the node's thread for the bulk lane. */
typedef void (*rnet_node_event_function)(const struct rnet_node_event *event, void *context);

/** Called for each endpoint, on the node's thread for the bulk lane. */
typedef void (*rnet_endpoint_function)(const struct rnet_endpoint_event *event, void *context);

/**
 * The numbers of elements of a snapshot, and what is wrong. New versions of the library add fields at its end.
 */
typedef struct rnet_snapshot_info {
  /** Number of nodes: see rnet_snapshot_node(). */
  size_t node_count;
  /** Number of topics: see rnet_snapshot_topic(). */
  size_t topic_count;
  /** Number of servers: see rnet_snapshot_service(). */
  size_t service_count;
  /** Names of the nodes of this host that died within ten minutes and were not restarted. */
  const char *const *died;
  /** Number of `died`. */
  size_t died_count;
  /** What could not be read, with its node. */
  const char *const *problems;
  /** Number of `problems`. */
  size_t problem_count;
} rnet_snapshot_info;

/** A node. New versions of the library add fields at its end. */
typedef struct rnet_node_info {
  /** Its name: "/arm"; on another host "@host/arm". */
  const char *name;
  /** Its language: "rust", "python", "c"; "" on another host. */
  const char *language;
  /** Its program; "" on another host. */
  const char *program;
  /** Its version of robot-net; "" on another host. */
  const char *version;
  /** Whether it is on another host. Only its name and topics are known then. */
  bool is_remote;
  /** Its process. */
  uint32_t pid;
  /** Its user. */
  uint32_t uid;
  /** When it joined, in ns since 1970 UTC. */
  uint64_t started_unix_ns;
  /** Topics that it publishes. */
  const char *const *publishes;
  /** Number of `publishes`. */
  size_t publish_count;
  /** Topics that it subscribes to. */
  const char *const *subscribes;
  /** Number of `subscribes`. */
  size_t subscribe_count;
} rnet_node_info;

/** A topic: the sum of its endpoints. New versions of the library add fields at its end. */
typedef struct rnet_topic_info {
  /** Its name. */
  const char *name;
  /** Name of the type of its first publisher, else of its first subscription; "" for raw bytes. */
  const char *type_name;
  /** Whether the library itself uses it: requests, replies, logs. */
  bool is_internal;
  /** Number of publishers. */
  size_t publisher_count;
  /** Number of subscriptions, with those of other hosts. */
  size_t subscriber_count;
  /** Messages sent by the current publishers. */
  uint64_t sent;
  /** Bytes of these messages. */
  uint64_t bytes;
  /** Messages received by the current subscriptions. */
  uint64_t received;
  /** Messages lost by the current subscriptions. */
  uint64_t lost;
} rnet_topic_info;

/** A server of a service or action. New versions of the library add fields at its end. */
typedef struct rnet_service_info {
  /** Name of the service. */
  const char *name;
  /** Node of the server. */
  const char *node;
  /** Name of the type of requests; "" for raw bytes. */
  const char *request_type;
  /** Name of the type of replies; "" for raw bytes. */
  const char *reply_type;
  /** Name of the type of feedback; null for a service that is not an action. */
  const char *feedback_type;
  /** Number of clients. */
  size_t client_count;
} rnet_service_info;

/** A rule that replaces a name: see rnet_node_options. */
typedef struct rnet_remap {
  /** The name to replace: "/scan", "node:lidar"; or a pattern with two stars, as in RNET_REMAP. */
  const char *from;
  /** Its replacement. */
  const char *to;
} rnet_remap;

/** Options of rnet_node_new(). Initialise it with RNET_NODE_OPTIONS_INIT; 0 and null mean the default. */
typedef struct rnet_node_options {
  /** sizeof(rnet_node_options), set by the initialiser. */
  size_t struct_size;
  /** The domain; default RNET_DOMAIN, else "0". */
  const char *domain;
  /** Directory of shared memory; default RNET_DIR, else /dev/shm. */
  const char *dir;
  /** Group of users who share the domain; default RNET_GROUP, else none. */
  const char *group;
  /** Directory of durable state; default RNET_STATE_DIR, else ~/.local/state/rnet. */
  const char *state_dir;
  /** Prefix of names without a leading slash; default RNET_NAMESPACE, else none. */
  const char *name_space;
  /** Rules that replace names, before those of RNET_REMAP. The first that matches applies. */
  const struct rnet_remap *remaps;
  /** Number of rules. */
  size_t remap_count;
  /** 1: the node follows the simulated time of /clock. 2: it does not. 0: RNET_SIM_TIME. */
  int32_t sim_time;
  /** 2: waiting threads keep their time slice and timer slack. 0 and 1: they change them. */
  int32_t tune_threads;
  /** The language of the program, which tools show; default "c". */
  const char *language;
} rnet_node_options;

/** Options of rnet_param_declare(). Initialise it with RNET_PARAM_OPTIONS_INIT; 0 and null mean none. */
typedef struct rnet_param_options {
  /** sizeof(rnet_param_options), set by the initialiser. */
  size_t struct_size;
  /**
   * The type of its values: "bool", "int", "float", "str", "list[bool]", "list[int]", "list[float]" or
   * "list[str]"; default: that of the default value.
   */
  const char *kind;
  /** The value of an unset parameter. Without it, it must be set before its node starts. */
  const struct rnet_value *default_value;
  /** The minimum of the value, or of each item of a list. */
  const struct rnet_value *min;
  /** The maximum of the value, or of each item of a list. */
  const struct rnet_value *max;
  /** The allowed texts of the value, or of each item of a list. */
  const char *const *choices;
  /** Number of choices; 0: all are allowed. */
  size_t choice_count;
  /** The unit, for display: "1/s". */
  const char *unit;
  /** A description for users. */
  const char *description;
  /** Whether it cannot be set while its node runs. */
  bool read_only;
  /** Whether its value survives a power cut. */
  bool durable;
  /**
   * Whether not to report on stderr that the stored value is not allowed, so that the parameter has its
   * default. The value and the reason are in rnet_param_info.
   */
  bool quiet;
  /** Space for options of new versions; 0. */
  uint8_t reserved[5];
} rnet_param_options;

/** Called with each new value. It belongs to the library, and is valid until the callback returns. */
typedef void (*rnet_value_function)(const struct rnet_value *value, void *context);

/** What a value contains. Begin with all bits zero, and set `kind` and the fields of that kind. */
typedef struct rnet_value_data {
  /** Its kind, an rnet_value_kind. */
  int32_t kind;
  /** The boolean. */
  bool boolean;
  /** The integer. */
  int64_t integer;
  /** The float. */
  double number;
  /** The text of a string, the bytes, JSON text, or the bytes of a message; not terminated by NUL. */
  struct rnet_bytes bytes;
  /** The items of a list or set. Null if read: see rnet_value_item(). */
  const struct rnet_value *const *items;
  /** Number of items of a list or set. */
  size_t item_count;
  /** The type of a message. Null if read: see rnet_value_type_name() and rnet_value_check(). */
  const struct rnet_type *message_type;
} rnet_value_data;

/** A parameter of any node. New versions of the library add fields at its end. */
typedef struct rnet_param_info {
  /** Its key in the state: "/params/arm/gain". */
  const char *key;
  /** The node that declared it: "/arm"; "" if none has, and then the rest except `value` is unset, too. */
  const char *node;
  /** Its name in that node: "/gain". */
  const char *name;
  /** The type of its values, as in rnet_param_options. */
  const char *kind;
  /** Its current value; null if it has none. */
  const struct rnet_value *value;
  /** The value of an unset parameter; null: none. */
  const struct rnet_value *default_value;
  /** The minimum; null: none. */
  const struct rnet_value *min;
  /** The maximum; null: none. */
  const struct rnet_value *max;
  /** The allowed texts. */
  const char *const *choices;
  /** Number of allowed texts; 0: all are allowed. */
  size_t choice_count;
  /** The unit; "" if it has none. */
  const char *unit;
  /** The description for users; "" if it has none. */
  const char *description;
  /** Whether it cannot be set while its node runs. */
  bool read_only;
  /** Whether its value survives a power cut. */
  bool durable;
  /** Whether it is unset, so that it has its default. */
  bool is_default;
  /** Why its declaration cannot be read; null if it can. */
  const char *problem;
  /** The stored value that its node has found and that is not allowed, as text; null: none. */
  const char *refused_value;
  /** Why that is not allowed: "is above its maximum 10.0". */
  const char *refused_why;
  /** The node that has set that. */
  const char *refused_by;
} rnet_param_info;

/**
 * Options of rnet_publisher_new(). Initialise it with RNET_PUBLISHER_OPTIONS_INIT; 0 and null mean the default.
 */
typedef struct rnet_publisher_options {
  /** sizeof(rnet_publisher_options), set by the initialiser. */
  size_t struct_size;
  /** The type of the messages; default: raw bytes. */
  const struct rnet_type *message_type;
  /** Whether subscribers may be reliable. */
  bool reliable;
  /** Whether to allocate all memory of the log now, so that a send never does. */
  bool reserve_log;
  /** What a send does while a reliable subscriber is full, an rnet_on_full. */
  int32_t on_full;
  /** The time for `on_full`, in ns; default 1 s. To wait for no time, choose RNET_ON_FULL_REFUSE. */
  int64_t full_timeout_ns;
  /** Number of messages that are kept for late subscribers. */
  uint32_t transient_local;
  /** The lane, an rnet_lane; default: bulk. */
  int32_t lane;
  /** Largest length of the log in bytes, a power of two; default 512 KiB. */
  uint64_t log_len_bytes;
  /** Largest memory for messages of more than 4096 bytes, in bytes; default 2 GiB. */
  uint64_t pool_limit_bytes;
  /** Number of messages of more than 4096 bytes that stay readable; default 11. */
  uint32_t large_depth;
  /** Promises a message at least this often, in ns. */
  int64_t deadline_ns;
  /** Messages that are older than this expire, in ns. */
  int64_t lifespan_ns;
  /**
   * The publisher is alive only while it sends, or calls rnet_publisher_assert_alive(), this often, in ns.
   */
  int64_t liveliness_lease_ns;
  /** The message that each subscriber receives if this process dies; at most 4096 bytes. Default: none. */
  struct rnet_bytes last_will;
} rnet_publisher_options;

/** Metadata of a message: see rnet_publisher_send_with(). Initialise it with RNET_META_INIT. */
typedef struct rnet_meta {
  /** sizeof(rnet_meta), set by the initialiser. */
  size_t struct_size;
  /** The time of its source in ns since 1970 UTC; 0: none. */
  int64_t source_ns;
  /** A number that relates it to another message; 0: none. */
  uint64_t correlation;
} rnet_meta;

/** A view of bytes that the user writes: not owned. */
typedef struct rnet_mut_bytes {
  /** The first byte. */
  uint8_t *data;
  /** Number of bytes. */
  size_t len;
} rnet_mut_bytes;

/** Options of rnet_pusher_new(). Initialise it with RNET_PUSHER_OPTIONS_INIT; 0 and null mean the default. */
typedef struct rnet_pusher_options {
  /** sizeof(rnet_pusher_options), set by the initialiser. */
  size_t struct_size;
  /** The type of the jobs; default: raw bytes. */
  const struct rnet_type *message_type;
  /** Maximum number of unfinished jobs, up to 65,536; default 1,024. */
  uint32_t backlog;
  /** How long rnet_pusher_push() waits while the backlog is full, in ns; default: it fails at once. */
  int64_t wait_for_capacity_ns;
  /** How long a worker may take for a job, in ns: after that it counts as lost. Default: no limit. */
  int64_t ack_within_ns;
} rnet_pusher_options;

/**
 * Called with each job that no worker acknowledged, and the reason, on the thread of the pusher. Both belong
 * to the library.
 */
typedef void (*rnet_undelivered_function)(struct rnet_bytes job,
                                          const struct rnet_error *error,
                                          void *context);

/** Counters of a pusher. */
typedef struct rnet_push_stats {
  /** sizeof(rnet_push_stats), set by the caller: see RNET_PUSH_STATS_INIT. */
  size_t struct_size;
  /** Jobs that were accepted. */
  uint64_t pushed;
  /** Jobs that a worker has acknowledged. */
  uint64_t done;
  /** Jobs that were sent to a second worker. */
  uint64_t redelivered;
  /** Jobs that were returned, for any reason. */
  uint64_t undelivered;
  /** Jobs that are not done, including those that wait for a worker. */
  uint64_t open;
  /** Workers now, free or busy. */
  uint64_t workers;
} rnet_push_stats;

/**
 * Options of rnet_puller_new() and rnet_pull_on(). Initialise it with RNET_PULLER_OPTIONS_INIT; 0 and null
 * mean the default.
 */
typedef struct rnet_puller_options {
  /** sizeof(rnet_puller_options), set by the initialiser. */
  size_t struct_size;
  /** The type of the jobs; default: raw bytes. */
  const struct rnet_type *message_type;
} rnet_puller_options;

/** Counters of a server. */
typedef struct rnet_service_stats {
  /** sizeof(rnet_service_stats), set by the caller: see RNET_SERVICE_STATS_INIT. */
  size_t struct_size;
  /** Accepted requests, goals or jobs, without the refused ones. */
  uint64_t calls;
  /** Calls whose handler runs now. */
  uint64_t running;
  /** Calls that wait for a handler now. */
  uint64_t waiting;
  /**
   * Calls that were refused because the backlog was full, and jobs that arrived while their worker closed.
   */
  uint64_t refused;
  /** Calls whose handler failed. */
  uint64_t failed;
  /** Calls that were cancelled, or whose caller was gone, before their handler returned. */
  uint64_t cancelled;
  /** Messages that a correct caller does not send. */
  uint64_t malformed;
  /** Answers that could not be sent: their caller was gone, or did not read. */
  uint64_t unsent;
  /** Requests that were dropped because their client has no endpoints for answers. */
  uint64_t unanswerable;
} rnet_service_stats;

/**
 * Options of rnet_recorder_start(). Initialise it with RNET_RECORDER_OPTIONS_INIT; 0 and null mean the default.
 *
 * All publishers are recorded by default. If topics, types, nodes or hosts are given, a publisher must match one of
 * each. In patterns of names, * is one part of a name and ** any number of parts.
 */
typedef struct rnet_recorder_options {
  /** sizeof(rnet_recorder_options), set by the initialiser. */
  size_t struct_size;
  /** The domain; default RNET_DOMAIN, else "0". */
  const char *domain;
  /** Directory of shared memory; default RNET_DIR, else /dev/shm. */
  const char *dir;
  /** Group of users who share the domain; default RNET_GROUP, else none. */
  const char *group;
  /** Directory of durable state; default RNET_STATE_DIR, else ~/.local/state/rnet. */
  const char *state_dir;
  /** Name of this host in the recording; default RNET_HOST, else that of the system. */
  const char *host;
  /** A description that is stored in the recording: `rnet record` stores its command line. */
  const char *description;
  /** Patterns of topics. */
  const char *const *topics;
  /** Number of `topics`. */
  size_t topic_count;
  /** Patterns of topics that are not recorded. */
  const char *const *excluded_topics;
  /** Number of `excluded_topics`. */
  size_t excluded_topic_count;
  /** Names of types, or their last parts: "foxglove.LaserScan", "LaserScan". */
  const char *const *types;
  /** Number of `types`. */
  size_t type_count;
  /** Patterns of nodes. */
  const char *const *nodes;
  /** Number of `nodes`. */
  size_t node_count;
  /** Names of hosts. */
  const char *const *hosts;
  /** Number of `hosts`. */
  size_t host_count;
  /** Records only while this topic has a publisher. */
  const char *while_topic;
  /** The compression, an rnet_compression. */
  int32_t compression;
  /** Whether to record images and point clouds as sent, instead of as Foxglove messages. */
  bool raw;
  /** Whether to write a file for ROS 2. Messages without a counterpart in ROS 2 are counted as missing. */
  bool ros2;
  /** Whether to leave out state and parameters. */
  bool without_state;
  /** Stops after this time, in ns. */
  int64_t duration_ns;
  /** Begins a new file after this time, in ns; at least 10 ms. */
  int64_t split_time_ns;
  /** Removes files that ended longer ago than this, in ns. */
  int64_t keep_time_ns;
  /** Begins a new file at this length, in bytes; at least 1 MiB. */
  uint64_t split_size_bytes;
  /** Largest length of all files together, in bytes. The oldest ones are removed to keep it. */
  uint64_t max_disk_bytes;
  /** Memory for messages that are not yet written, in bytes; default 256 MiB, at least 64 KiB. */
  uint64_t buffer_len_bytes;
} rnet_recorder_options;

/** The numbers of a report. New versions of the library add fields at its end. */
typedef struct rnet_recorder_info {
  /** Messages recorded. */
  uint64_t messages;
  /** Bytes of these messages. */
  uint64_t bytes;
  /** Messages of followed publishers that are missing: see rnet_recorder_report_loss(). */
  uint64_t missing;
  /** Publishers that are followed now. */
  uint64_t publishers;
  /** Publishers that were followed since the start. */
  uint64_t followed;
  /** Publishers that were seen but not read, or not to their end. The number of their messages is unknown. */
  uint64_t unread;
  /**
   * Values of state that were overwritten before they were recorded. The newest value of each key is recorded.
   */
  uint64_t skipped_values;
  /** Bytes that wait to be written. */
  uint64_t queued_bytes;
  /** Bytes of all existing files. */
  uint64_t file_bytes;
  /** Files that were removed to keep max_disk_bytes. */
  uint64_t removed_files;
  /**
   * Whether the recording has ended by itself: its time is over, or it failed. rnet_recorder_stop() gives the
   * result.
   */
  bool is_finished;
  /** Whether nothing is written because the disk is full. */
  bool disk_is_full;
  /** Whether nothing is recorded because while_topic has no publisher. */
  bool is_waiting;
  /** Number of entries of rnet_recorder_report_loss(). */
  size_t loss_count;
  /** Paths of the existing files, the oldest first. */
  const char *const *files;
  /** Number of `files`. */
  size_t file_count;
  /** What prevents writing now, and what happened since the last report. */
  const char *const *notes;
  /** Number of `notes`. */
  size_t note_count;
} rnet_recorder_info;

/**
 * Missing messages of one topic, node and cause. New versions of the library
 * add fields at its end.
 */
typedef struct rnet_recorder_loss {
  /** The topic; "?" if it is unknown. */
  const char *topic;
  /** The node of the publisher; "?" if it is unknown. */
  const char *node;
  /** The cause: "overrun", "reused", "queue", "disk_full", … (docs/guide/recording.md). */
  const char *cause;
  /** Their number. */
  uint64_t count;
} rnet_recorder_loss;

/** What an open recording contains. New versions of the library add fields at its end. */
typedef struct rnet_recording_info {
  /** Path with which it was opened. */
  const char *path;
  /** The profile in its header: "rnet", "ros2", or another text of its writer. */
  const char *profile;
  /** The library that wrote it, from its header. */
  const char *library;
  /** Length of the file, in bytes. */
  uint64_t len_bytes;
  /** Number of messages of all channels. */
  uint64_t message_count;
  /** Time at which the first message was recorded, in ns since 1970 UTC; 0 without messages. */
  uint64_t start_ns;
  /** Time at which the last message was recorded, in ns since 1970 UTC; 0 without messages. */
  uint64_t end_ns;
  /** Number of channels: see rnet_recording_channel(). */
  size_t channel_count;
  /** Number of entries of rnet_recording_metadata(). */
  size_t metadata_count;
  /** Problems that opening the file has found, with its path. */
  const char *const *problems;
  /** Number of `problems`; 0 for a complete file without damage. */
  size_t problem_count;
  /**
   * Whether written data cannot be read. A missing end is not damage: the file is still being written, or its
   * recorder was killed.
   */
  bool is_damaged;
} rnet_recording_info;

/**
 * A channel of a recording: the messages of one publisher, or of one topic in files of other programs. New versions
 * of the library add fields at its end.
 */
typedef struct rnet_recorded_channel {
  /** The topic. */
  const char *topic;
  /** Node of the publisher; "" if the file does not name it. */
  const char *node;
  /** Host of the publisher; "" if the file does not name it. */
  const char *host;
  /** Name of the type of its messages; "" for raw bytes. */
  const char *type_name;
  /** How the file encodes its messages: "protobuf", "rnet-plain", "bytes", "json", "cdr", … */
  const char *encoding;
  /** Id of the publisher; 0 if the file does not name it. */
  uint64_t publisher;
  /** Number of its messages. */
  uint64_t message_count;
  /** Whether the recorder itself wrote it: state, metadata, missing messages. */
  bool is_internal;
} rnet_recorded_channel;

/** An entry of a metadata record of a recording. New versions of the library add fields at its end. */
typedef struct rnet_recorded_entry {
  /** Number of the record, in the order of the file. A name may occur several times. */
  size_t record;
  /** Name of the record: "rnet.recording", "rnet.losses", … */
  const char *name;
  /** Key of the entry. */
  const char *key;
  /** Its value. */
  const char *value;
} rnet_recorded_entry;

/**
 * Which messages of a recording to read. Initialise it with RNET_RECORDING_SELECT_INIT; 0 and null mean all.
 */
typedef struct rnet_recording_select {
  /** sizeof(rnet_recording_select), set by the initialiser. */
  size_t struct_size;
  /** The topics. */
  const char *const *topics;
  /** Number of `topics`. */
  size_t topic_count;
  /** The first time of recording, in ns since 1970 UTC. */
  uint64_t start_ns;
  /** The end of the times of recording (exclusive), in ns since 1970 UTC. */
  uint64_t end_ns;
  /** Whether to read also the channels of the recorder itself. They can be named in `topics`, too. */
  bool with_internal;
  /** Whether the messages that transient_local publishers kept at `start_ns` come first. */
  bool with_latched;
  /** Space for options of new versions; 0. */
  uint8_t reserved[6];
} rnet_recording_select;

/** A message of a recording. New versions of the library add fields at its end. */
typedef struct rnet_recorded_message {
  /** Its channel, with its topic, node and type. */
  const struct rnet_recorded_channel *channel;
  /** Number of the channel, as for rnet_recording_channel(). */
  size_t channel_index;
  /** Its sequence number at its publisher, the low 32 bits. */
  uint32_t sequence;
  /** When it was recorded, in ns since 1970 UTC. */
  uint64_t log_ns;
  /** When it was sent, in ns since 1970 UTC. */
  uint64_t publish_ns;
  /** Its content, encoded as rnet_recording_type() describes. It may have any alignment. */
  struct rnet_bytes data;
} rnet_recorded_message;

/**
 * Options of rnet_service_new(). Initialise it with RNET_SERVICE_OPTIONS_INIT; 0 and null mean the default.
 */
typedef struct rnet_service_options {
  /** sizeof(rnet_service_options), set by the initialiser. */
  size_t struct_size;
  /** The type of requests; default: raw bytes. */
  const struct rnet_type *request_type;
  /** The type of replies; default: raw bytes. */
  const struct rnet_type *reply_type;
  /** How many calls the handler may run at a time, each on its own thread: 1 to 256; default 1. */
  uint32_t at_once;
  /** How many calls may wait, up to 65,536; default 64. Further calls are refused. */
  uint32_t backlog;
  /** Whether no call may wait. */
  bool no_backlog;
  /** Space for options of new versions; 0. */
  uint8_t reserved[7];
} rnet_service_options;

/**
 * Options of rnet_client_new() and rnet_node_call(). Initialise it with RNET_CLIENT_OPTIONS_INIT; 0 and null
 * mean the default.
 */
typedef struct rnet_client_options {
  /** sizeof(rnet_client_options), set by the initialiser. */
  size_t struct_size;
  /** The type of requests; default: raw bytes. */
  const struct rnet_type *request_type;
  /** The type of replies; default: raw bytes. */
  const struct rnet_type *reply_type;
  /**
   * Time limit of each call that sets none, in ns, including the wait for a server; default 10 s;
   * RNET_FOREVER: none.
   */
  int64_t timeout_ns;
} rnet_client_options;

/**
 * Options of a write. Initialise it with RNET_PUT_OPTIONS_INIT; 0 and null mean the default. A write without
 * a time to live or a last will removes those of the previous write.
 */
typedef struct rnet_put_options {
  /** sizeof(rnet_put_options), set by the initialiser. */
  size_t struct_size;
  /** Writes only at this revision (rnet_entry_info), otherwise RNET_CONFLICT; default: at any. */
  uint64_t if_revision;
  /** Writes only if the key is absent, otherwise RNET_CONFLICT. */
  bool if_absent;
  /** Allows another type than that of the current value. */
  bool change_type;
  /** Deletes the key when this node ends for any reason, unless another writer has written it since. */
  bool last_will_delete;
  /** 1: keeps the key on disk from now on, and returns when it is there. 2: in memory only. 0: as it is. */
  int32_t durable;
  /** Time to live in ns: the key is deleted if it is not written again. Default: forever. */
  int64_t ttl_ns;
  /** As `ttl_ns`, as a time of CLOCK_BOOTTIME in ns. */
  uint64_t expires_boot_ns;
  /**
   * The value that the key gets when this node ends for any reason, unless another writer has written it
   * since.
   */
  const struct rnet_value *last_will;
} rnet_put_options;

/**
 * The content of an rnet_entry. Initialise it with RNET_ENTRY_INFO_INIT. Its pointers are valid as long as
 * the entry.
 */
typedef struct rnet_entry_info {
  /** sizeof(rnet_entry_info), set by the initialiser. */
  size_t struct_size;
  /** The key, with its leading slash. */
  const char *key;
  /** Its value. */
  const struct rnet_value *value;
  /** Revision at which it was written: a number that grows with each change of any key. */
  uint64_t revision;
  /** Number of writes of the key since it was created, from 1. */
  uint64_t version;
  /** Name of the node that wrote it. */
  const char *owner;
  /** Time of the write, in ns since 1970 UTC. */
  uint64_t written_unix_ns;
  /** Expiry time, in ns of CLOCK_BOOTTIME; 0: never. */
  uint64_t expires_boot_ns;
  /** Remaining time to live, in ns; RNET_FOREVER if it does not expire. */
  int64_t ttl_left_ns;
  /** Whether it is kept on disk. */
  bool durable;
  /** Whether it is deleted when the node that wrote it ends. */
  bool last_will_delete;
  /** The value that it gets when the node that wrote it ends; null: none. */
  const struct rnet_value *last_will;
} rnet_entry_info;

/**
 * The content of an rnet_change. Initialise it with RNET_CHANGE_INFO_INIT. Its pointers are valid as long as
 * the change.
 */
typedef struct rnet_change_info {
  /** sizeof(rnet_change_info), set by the initialiser. */
  size_t struct_size;
  /** The key, with its leading slash. */
  const char *key;
  /** The key as it is now; null: it was deleted. */
  const struct rnet_entry *entry;
  /** 1: it was deleted because it expired. 2: it was not. 0: unknown, because the watch was too slow. */
  int32_t expired;
  /** Revision of the change. */
  uint64_t revision;
  /** Number of values of this key that the watch missed before this one; -1: unknown. */
  int64_t skipped;
  /** Whether this is not a change, but a value that existed when the watch began. */
  bool initial;
} rnet_change_info;

/** Called for each change. The change belongs to the library, and is valid until the callback returns. */
typedef void (*rnet_change_function)(const struct rnet_change *change, void *context);

/** A publisher or subscriber. New versions of the library add fields at its end. */
typedef struct rnet_peer {
  /** Its id. */
  uint64_t id;
  /** Its node. */
  const char *node;
} rnet_peer;

/** What a subscriber has counted for one publisher. New versions of the library add fields at its end. */
typedef struct rnet_publisher_stats {
  /** The publisher's id; 0 in the entry that sums the oldest former publishers. */
  uint64_t publisher;
  /** Its node; "" if unknown. */
  const char *node;
  /** Whether it is still connected. */
  bool connected;
  /** Messages received. */
  uint64_t received;
  /** Messages lost because the subscriber was too slow, and the publisher did not wait for it. */
  uint64_t lost_overrun;
  /** Messages lost between hosts. */
  uint64_t lost_link;
  /** Messages lost because the publisher exited or restarted. */
  uint64_t lost_restart;
  /** Messages lost because the publisher had detached the subscriber. */
  uint64_t lost_detached;
  /** Messages that the subscriber passed over: older than the last that it keeps. */
  uint64_t skipped;
  /** Messages not delivered because they were older than the publisher's lifespan. */
  uint64_t expired;
  /** Periods of the subscriber's deadline in which the publisher sent nothing. */
  uint64_t deadline_missed;
  /** Messages that could not be decoded; `received` includes them. */
  uint64_t malformed;
  /** Messages not taken yet. */
  uint64_t behind;
  /** The age of the oldest of these, in ns. */
  uint64_t behind_age_ns;
} rnet_publisher_stats;

/**
 * What a subscriber has counted for all publishers together. Initialise it with RNET_SUBSCRIBER_COUNTS_INIT.
 */
typedef struct rnet_subscriber_counts {
  /** sizeof(rnet_subscriber_counts), set by the initialiser. */
  size_t struct_size;
  /** Messages lost because the subscriber was too slow, and the publisher did not wait for it. */
  uint64_t lost_overrun;
  /** Messages lost between hosts. */
  uint64_t lost_link;
  /** Messages lost because a publisher exited or restarted. */
  uint64_t lost_restart;
  /** Messages lost because a publisher had detached the subscriber. */
  uint64_t lost_detached;
  /** Messages not taken yet. */
  uint64_t behind;
  /** The age of the oldest of these, in ns. */
  uint64_t behind_age_ns;
  /** Number of connected publishers that are alive. */
  size_t alive;
  /** Number of those that have not shown a sign of life for longer than their lease. */
  size_t not_alive;
} rnet_subscriber_counts;

/** Options of rnet_timer_new(). Initialise it with RNET_TIMER_OPTIONS_INIT; 0 means the default. */
typedef struct rnet_timer_options {
  /** sizeof(rnet_timer_options), set by the initialiser. */
  size_t struct_size;
  /** Whether to tick once, after one period. */
  bool once;
  /** Whether to run on the thread of the urgent lane. */
  bool urgent;
  /** Space for options of new versions; 0. */
  uint8_t reserved[6];
} rnet_timer_options;

/** One tick of a timer or rate. Initialise it with RNET_TICK_INIT to receive one from rnet_rate_sleep(). */
typedef struct rnet_tick {
  /** sizeof(rnet_tick), set by the initialiser. */
  size_t struct_size;
  /** Its number: tick 1 is due one period after the start. Skipped ticks count. */
  uint64_t number;
  /** When it was due, in ns of the node's time. */
  uint64_t due_ns;
  /** How late it was taken, in ns. */
  uint64_t late_ns;
  /** Number of ticks skipped since the last one. */
  uint64_t missed;
} rnet_tick;

/** Called for each tick of a timer. The tick is valid until the callback returns. */
typedef void (*rnet_tick_function)(const struct rnet_tick *tick, void *context);

/** A field of a plain struct. */
typedef struct rnet_field {
  /** Its name. Fields whose names begin with _ are padding. */
  const char *name;
  /** Its offset in the struct, in bytes: offsetof(). */
  size_t offset;
  /** The kind of number, an rnet_primitive; RNET_STRUCT for a struct. */
  int32_t primitive;
  /** Number of elements of an array; 0 for a single value. */
  uint32_t array_len;
  /**
   * For an array of arrays, the lengths of the inner ones, from the outside in; 0: none. `float m[4][3]` has
   * array_len 4 and inner_len {3}.
   */
  uint32_t inner_len[3];
  /** For RNET_STRUCT its type, which must be plain; otherwise null. */
  const struct rnet_type *struct_type;
} rnet_field;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Serves an action: `handler` is called for each goal, one at a time. It sends feedback with
 * rnet_request_send(), and gives the result with rnet_request_answer(). The caller frees the server with
 * rnet_service_free().
 *
 * A goal whose handler has asked for its cancellation, and saw it, ends with RNET_CANCELLED,
 * whatever the handler answers.
 *
 * `free_context` is called once with `context` after the last call, also if this function fails.
 *
 * Errors: as for rnet_service_new().
 *
 * @pre As for rnet_service_new().
 */
enum rnet_code rnet_action_new(const struct rnet_node *node,
                               const char *name,
                               const struct rnet_action_options *options,
                               rnet_request_function handler,
                               void *context,
                               rnet_free_function free_context,
                               struct rnet_service **out,
                               struct rnet_error **error);

/**
 * Opens a client of an action, whose servers may start later. The caller frees it with
 * rnet_action_client_free().
 *
 * Errors: as for rnet_client_new().
 *
 * @pre As for rnet_client_new().
 */
enum rnet_code rnet_action_client_new(const struct rnet_node *node,
                                      const char *name,
                                      const struct rnet_action_options *options,
                                      struct rnet_action_client **out,
                                      struct rnet_error **error);

/**
 * Sends a goal, without waiting. If no server exists, it goes to the first that starts. The caller frees it
 * with rnet_goal_free(), which cancels it.
 *
 * Errors: RNET_BAD_VALUE, RNET_CLOSED. Others are those of rnet_goal_result().
 *
 * @pre `client` is a client, `data` valid for reads of `len` bytes, `options` null or initialised, `out` valid
 * for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_action_client_send(const struct rnet_action_client *client,
                                       const uint8_t *data,
                                       size_t len,
                                       const struct rnet_call_options *options,
                                       struct rnet_goal **out,
                                       struct rnet_error **error);

/**
 * Asks all servers of the action to cancel all goals, of every client, and stores the number of servers: for
 * operators and supervisors.
 *
 * Errors: RNET_FULL if a server does not read; RNET_CLOSED.
 *
 * @pre `client` is a client, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_action_client_cancel_all(const struct rnet_action_client *client,
                                             size_t *out,
                                             struct rnet_error **error);

/**
 * The name of the action, with its leading slash. Valid until the client is freed; "" if `client` is null.
 *
 * @pre `client` is null or was not freed.
 */
const char *rnet_action_client_name(const struct rnet_action_client *client);

/**
 * The counters of a client.
 *
 * @pre `client` is a client, `out` initialised, `error` null or valid for a write.
 */
enum rnet_code rnet_action_client_get_stats(const struct rnet_action_client *client,
                                            struct rnet_client_stats *out,
                                            struct rnet_error **error);

/**
 * Closes a client: its goals are cancelled and end with RNET_CLOSED, also those that other threads wait for.
 * Null and a closed client are allowed.
 *
 * @pre `client` is null or was not freed.
 */
void rnet_action_client_close(const struct rnet_action_client *client);

/**
 * Frees a client. Goals that it sent continue; see rnet_action_client_close(). Null is allowed. No other
 * thread may be about to use it.
 *
 * @pre `client` is null or was not freed.
 */
void rnet_action_client_free(struct rnet_action_client *client);

/**
 * Waits for the next feedback, for at most `timeout_ns`. `*out` becomes an owned sample, which the caller
 * frees; null once the goal has ended. Up to 1,024 unread messages wait; older ones are skipped and counted.
 *
 * Errors: RNET_TIMEOUT if none is there yet; RNET_CLOSED.
 *
 * @pre `goal` is a goal, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_goal_feedback(const struct rnet_goal *goal,
                                  int64_t timeout_ns,
                                  struct rnet_sample **out,
                                  struct rnet_error **error);

/**
 * Waits for the result, for at most `timeout_ns`. `*out` becomes an owned sample, which the caller frees.
 * The result is given once.
 *
 * Errors: RNET_TIMEOUT, after which the goal continues, unless its own time limit is over; RNET_CANCELLED
 * once the handler has returned; RNET_CLOSED if the result was given; the others of rnet_client_call().
 *
 * @pre As for rnet_goal_feedback().
 */
enum rnet_code rnet_goal_result(const struct rnet_goal *goal,
                                int64_t timeout_ns,
                                struct rnet_sample **out,
                                struct rnet_error **error);

/**
 * Asks the server to cancel the goal: it ends with RNET_CANCELLED once its handler has returned, or with its
 * result if that came first.
 *
 * Errors: RNET_FULL if the server does not read: it was not asked; RNET_CLOSED.
 *
 * @pre `goal` is a goal, `error` null or valid for a write.
 */
enum rnet_code rnet_goal_cancel(const struct rnet_goal *goal,
                                struct rnet_error **error);

/**
 * Cancels and frees a goal, without waiting. Null is allowed. No other thread may be about to use it.
 *
 * @pre `goal` is null or was not freed.
 */
void rnet_goal_free(struct rnet_goal *goal);

/**
 * Passes each message of each topic that matches `pattern`, including future topics, to `on_message`, and each
 * error to `on_error` if that is not null. In a pattern, * matches one part of a name and ** any number of parts.
 * rnet_sample_topic() and rnet_sample_node() tell where a message is from.
 *
 * The callbacks run on the node's threads: those of the urgent and the bulk lane may call them at the same time.
 * Each topic is subscribed with the same options when its first publisher is found; earlier messages are received
 * only with `transient_local`. `free_context` is called once with `context` after the last call, also if this function
 * fails. The caller frees the subscription with rnet_any_subscription_free().
 *
 * Errors: RNET_BAD_NAME for an invalid pattern, RNET_BAD_QOS, RNET_BAD_VALUE, RNET_IO, RNET_CLOSED.
 *
 * @pre `node` is a node, `pattern` a string, `options` null or initialised, `out` valid for a write, `error` null or valid
 * for a write. Two other threads at a time may use the functions and the context.
 */
enum rnet_code rnet_node_subscribe_any(const struct rnet_node *node,
                                       const char *pattern,
                                       const struct rnet_subscriber_options *options,
                                       rnet_sample_function on_message,
                                       rnet_error_function on_error,
                                       void *context,
                                       rnet_free_function free_context,
                                       struct rnet_any_subscription **out,
                                       struct rnet_error **error);

/**
 * The topics found so far, including those without a publisher now, as a list of strings. The caller frees it with
 * rnet_value_free().
 *
 * Errors: RNET_CLOSED.
 *
 * @pre `any` is a subscription, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_any_subscription_topics(const struct rnet_any_subscription *any,
                                            struct rnet_value **out,
                                            struct rnet_error **error);

/**
 * As rnet_subscription_stats(), for one of the topics found; empty for another one.
 *
 * Errors: RNET_CLOSED.
 *
 * @pre `any` is a subscription, `topic` a string, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_any_subscription_stats(const struct rnet_any_subscription *any,
                                           const char *topic,
                                           struct rnet_stats_list **out,
                                           struct rnet_error **error);

/**
 * Ends the callbacks and frees the subscription. When it returns, they do not run and are not called again, except
 * within a callback. Null is allowed.
 *
 * @pre `any` is null or was not freed.
 */
void rnet_any_subscription_free(struct rnet_any_subscription *any);

/**
 * Removes a callback. When it returns, the callback does not run and is not called again, except within a
 * callback. Null is allowed.
 *
 * @pre `guard` is null or a guard that was not freed or detached.
 */
void rnet_guard_free(struct rnet_guard *guard);

/**
 * Keeps the callback until its object is closed, and frees the guard. Null is allowed.
 *
 * @pre As for rnet_guard_free().
 */
void rnet_guard_detach(struct rnet_guard *guard);

/**
 * Reports an error of a callback, from within it: it is counted, shown by `rnet status`, and logged. For languages
 * whose exceptions must not leave a callback. Without effect on a thread that runs no callback of robot-net.
 *
 * @pre `message` is null or a string.
 */
void rnet_report_callback_error(const char *message);

/**
 * Receives the commands of the only driver with authority: `apply` is called with each, and with the
 * fallback message. It falls back at once. The caller frees the receiver with rnet_command_free().
 *
 * `apply` is null if `forward` of the options is set; `on_fallback` is null unless the fallback is
 * RNET_FALLBACK_HANDLER. `free_context` is called once with `context` after the last call of both, also if
 * this function fails.
 *
 * Errors: RNET_RECEIVER_EXISTS; RNET_BAD_VALUE without a fallback, for a fallback that is not of the type or
 * fails, or for a deadline that is not allowed; RNET_BAD_NAME, RNET_LIMIT_REACHED, RNET_OUT_OF_MEMORY,
 * RNET_CLOSED.
 *
 * @pre `node` is a node, `topic` a string, `options` null or initialised, `out` valid for a write, `error` null
 * or valid for a write. The functions and the context may be used by other threads.
 */
enum rnet_code rnet_command_new(const struct rnet_node *node,
                                const char *topic,
                                const struct rnet_command_options *options,
                                rnet_apply_function apply,
                                rnet_fallback_function on_fallback,
                                void *context,
                                rnet_free_function free_context,
                                struct rnet_command **out,
                                struct rnet_error **error);

/**
 * The topic of the command. Valid until the receiver is freed; "" if `command` is null.
 *
 * @pre `command` is null or was not freed.
 */
const char *rnet_command_topic(const struct rnet_command *command);

/**
 * The counters of a receiver.
 *
 * @pre `command` is a receiver, `out` initialised, `error` null or valid for a write.
 */
enum rnet_code rnet_command_get_stats(const struct rnet_command *command,
                                      struct rnet_command_stats *out,
                                      struct rnet_error **error);

/**
 * The driver with authority, and whether the receiver has fallen back. The caller frees it with
 * rnet_command_status_free().
 *
 * @pre `command` is a receiver, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_command_get_status(const struct rnet_command *command,
                                       struct rnet_command_status **out,
                                       struct rnet_error **error);

/**
 * Frees a status. Null is allowed.
 *
 * @pre `status` is null or was not freed.
 */
void rnet_command_status_free(struct rnet_command_status *status);

/**
 * Falls back for the last time, and closes the receiver. When it returns, its functions do not run and are not called
 * again, except within a callback. Null and a closed receiver are allowed.
 *
 * @pre `command` is null or was not freed.
 */
void rnet_command_close(const struct rnet_command *command);

/**
 * Closes and frees a receiver. Null is allowed. No other thread may be about to use it.
 *
 * @pre `command` is null or was not freed.
 */
void rnet_command_free(struct rnet_command *command);

/**
 * Takes authority over a command; waits for a receiver, but not for authority. The caller frees the driver
 * with rnet_driver_free(), which releases authority.
 *
 * Errors: RNET_NOT_IN_FORCE if a driver of the same or a higher priority has authority, or the process of
 * the receiver is stopped; RNET_TIMEOUT without a receiver; RNET_BAD_VALUE for a lease or priority that is
 * not allowed; RNET_INCOMPATIBLE_TYPE, RNET_BAD_NAME, RNET_LIMIT_REACHED, RNET_OUT_OF_MEMORY, RNET_CLOSED.
 *
 * @pre `node` is a node, `topic` a string, `options` null or initialised, `out` valid for a write, `error` null
 * or valid for a write.
 */
enum rnet_code rnet_driver_take(const struct rnet_node *node,
                                const char *topic,
                                const struct rnet_driver_options *options,
                                struct rnet_driver **out,
                                struct rnet_error **error);

/**
 * The topic of the command. Valid until the driver is freed; "" if `driver` is null.
 *
 * @pre `driver` is null or was not freed.
 */
const char *rnet_driver_topic(const struct rnet_driver *driver);

/**
 * Sends a command and renews the lease. It is applied if it arrives within the deadline of the receiver, and
 * the driver still has authority.
 *
 * Errors: RNET_NOT_IN_FORCE if the receiver has reported that the authority has ended; as for
 * rnet_publisher_send().
 *
 * @pre `driver` is a driver, `data` valid for reads of `len` bytes, `error` null or valid for a write.
 */
enum rnet_code rnet_driver_send(struct rnet_driver *driver,
                                const uint8_t *data,
                                size_t len,
                                struct rnet_error **error);

/**
 * Renews the lease without a command; waits for the receiver, for at most the lease. Closing the driver ends the wait.
 *
 * Errors: RNET_NOT_IN_FORCE, also if the receiver does not answer in time; RNET_CLOSED, RNET_WRONG_THREAD.
 *
 * @pre `driver` is a driver, `error` null or valid for a write.
 */
enum rnet_code rnet_driver_renew(struct rnet_driver *driver,
                                 struct rnet_error **error);

/**
 * Takes authority again after it has ended; waits for a receiver for at most `timeout_ns`, 0: that of
 * rnet_driver_take(). A driver with authority keeps it.
 *
 * Errors: as for rnet_driver_take(); RNET_WRONG_THREAD.
 *
 * @pre `driver` is a driver, `error` null or valid for a write.
 */
enum rnet_code rnet_driver_retake(struct rnet_driver *driver,
                                  int64_t timeout_ns,
                                  struct rnet_error **error);

/**
 * Whether the driver has authority, as last reported by the receiver.
 *
 * Errors: RNET_CLOSED, RNET_WRONG_THREAD.
 *
 * @pre `driver` is a driver, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_driver_in_force(struct rnet_driver *driver,
                                    bool *out,
                                    struct rnet_error **error);

/**
 * The number of its authority: higher for each that the receiver grants.
 *
 * Errors: RNET_CLOSED, RNET_WRONG_THREAD.
 *
 * @pre `driver` is a driver, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_driver_number(const struct rnet_driver *driver,
                                  uint64_t *out,
                                  struct rnet_error **error);

/**
 * Releases authority and closes the driver: the receiver falls back at once. It must still be freed. A
 * closed driver is allowed.
 *
 * Errors: RNET_NOT_IN_FORCE if the process of the receiver is stopped; RNET_TIMEOUT if it does not answer
 * within the lease. Authority then ends with the lease. RNET_CLOSED if another thread closes the driver meanwhile.
 *
 * @pre `driver` is a driver, `error` null or valid for a write.
 */
enum rnet_code rnet_driver_release(struct rnet_driver *driver,
                                   struct rnet_error **error);

/**
 * As rnet_driver_release(), without reporting errors. Null and a closed driver are allowed.
 *
 * @pre `driver` is null or was not freed.
 */
void rnet_driver_close(struct rnet_driver *driver);

/**
 * Closes and frees a driver. Null is allowed. No other thread may be about to use it.
 *
 * @pre `driver` is null or was not freed.
 */
void rnet_driver_free(struct rnet_driver *driver);

/** The code of an error. RNET_OK if `error` is null. */
enum rnet_code rnet_error_code(const struct rnet_error *error);

/**
 * What failed, on which topic or node, and what to do. Valid until the error is freed; "" if `error` is null.
 */
const char *rnet_error_text(const struct rnet_error *error);

/** The topic, service or command of an error; null if it is not about one. Valid until the error is freed. */
const char *rnet_error_topic(const struct rnet_error *error);

/** The peer node that an error is about; null if it is not about one. Valid until the error is freed. */
const char *rnet_error_node(const struct rnet_error *error);

/**
 * For RNET_CALL_FAILED the kind of the handler's error, such as the class of its exception; for RNET_CANCELLED the
 * name of the reason, such as "caller"; otherwise null. Valid until the error is freed.
 */
const char *rnet_error_kind(const struct rnet_error *error);

/**
 * For RNET_CALL_FAILED the text of the handler's error; for RNET_REFUSED by an action the node whose goal runs;
 * otherwise null. Valid until the error is freed.
 */
const char *rnet_error_detail(const struct rnet_error *error);

/**
 * A copy of an error that belongs to the library, such as that of a callback. The caller frees it. Null if `error` is
 * null.
 */
struct rnet_error *rnet_error_clone(const struct rnet_error *error);

/**
 * Frees an error. Null is allowed.
 *
 * @pre `error` is null or an error that was not freed.
 */
void rnet_error_free(struct rnet_error *error);

/**
 * The name of a code as in docs/guide/errors.md: "timeout". "ok" for RNET_OK, "other" for an unknown number.
 */
const char *rnet_code_name(int32_t code);

/** What has happened. */
enum rnet_match_kind rnet_match_event_kind(const struct rnet_match_event *event);

/** The id of the peer, a publisher or subscriber; 0 if it is incompatible. */
uint64_t rnet_match_event_id(const struct rnet_match_event *event);

/** The node of the peer; "" if it is incompatible: the error names both nodes. */
const char *rnet_match_event_node(const struct rnet_match_event *event);

/** Why a peer is incompatible, naming both sides; null for other events. */
const struct rnet_error *rnet_match_event_error(const struct rnet_match_event *event);

/** The id of the publisher. */
uint64_t rnet_deadline_event_publisher(const struct rnet_deadline_event *event);

/** The node of the publisher. */
const char *rnet_deadline_event_node(const struct rnet_deadline_event *event);

/** Number of missed periods since the last such event, 1 or more. */
uint64_t rnet_deadline_event_missed(const struct rnet_deadline_event *event);

/** Number of missed periods of this publisher so far. */
uint64_t rnet_deadline_event_total(const struct rnet_deadline_event *event);

/** The id of the publisher. */
uint64_t rnet_liveliness_event_publisher(const struct rnet_liveliness_event *event);

/** The node of the publisher. */
const char *rnet_liveliness_event_node(const struct rnet_liveliness_event *event);

/** Whether the publisher is alive now. One that has left or died is not alive, and is in neither count. */
bool rnet_liveliness_event_is_alive(const struct rnet_liveliness_event *event);

/** Number of connected publishers that are alive after the change. */
size_t rnet_liveliness_event_alive_count(const struct rnet_liveliness_event *event);

/** Number of connected publishers that are not alive after the change. */
size_t rnet_liveliness_event_not_alive_count(const struct rnet_liveliness_event *event);

/** What has happened. */
enum rnet_node_change rnet_node_event_kind(const struct rnet_node_event *event);

/** The name of the node; "@host/node" for one of another host. */
const char *rnet_node_event_node(const struct rnet_node_event *event);

/** What has happened. */
enum rnet_endpoint_kind rnet_endpoint_event_kind(const struct rnet_endpoint_event *event);

/** The id of the endpoint, unique in the domain. */
uint64_t rnet_endpoint_event_id(const struct rnet_endpoint_event *event);

/** Whether it is a publisher; otherwise it is a subscriber. */
bool rnet_endpoint_event_is_publisher(const struct rnet_endpoint_event *event);

/** Its topic. */
const char *rnet_endpoint_event_topic(const struct rnet_endpoint_event *event);

/** Its node; "@host/node" if it represents endpoints of another host. */
const char *rnet_endpoint_event_node(const struct rnet_endpoint_event *event);

/** The name of its type; "" for raw bytes. */
const char *rnet_endpoint_event_type_name(const struct rnet_endpoint_event *event);

/** Its quality of service, as JSON. */
const char *rnet_endpoint_event_qos_json(const struct rnet_endpoint_event *event);

/** Number of endpoints that it represents: 1, or more for subscribers of another host. */
uint32_t rnet_endpoint_event_count(const struct rnet_endpoint_event *event);

/**
 * Its type, to open an endpoint of the same type. The caller frees it with rnet_type_free().
 *
 * Errors: RNET_IO after its node has left; RNET_CORRUPT.
 *
 * @pre `event` is valid, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_endpoint_event_type(const struct rnet_endpoint_event *event,
                                        struct rnet_type **out,
                                        struct rnet_error **error);

/**
 * Follows a topic, which need not exist yet. With `history`, the messages that transient_local publishers keep for
 * late subscribers come first. The caller frees the follower with rnet_follower_free().
 *
 * Errors: RNET_BAD_NAME, RNET_NO_PERMISSION, RNET_LAYOUT_VERSION.
 *
 * @pre `domain` is a domain, `topic` a string, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_domain_follow(const struct rnet_domain *domain,
                                  const char *topic,
                                  bool history,
                                  struct rnet_follower **out,
                                  struct rnet_error **error);

/**
 * Waits for the next message of any publisher, for at most `timeout_ns`: RNET_FOREVER waits without a limit, 0 does
 * not wait. Messages of one publisher keep their order.
 *
 * `*out` becomes a message that is valid until the next receive from this follower, also if another thread closes it;
 * null if nothing has arrived and
 * `timeout_ns` is 0, which is not an error.
 *
 * Errors: RNET_TIMEOUT, RNET_NO_PERMISSION, RNET_LAYOUT_VERSION, RNET_IO, RNET_CLOSED, RNET_WRONG_THREAD.
 *
 * @pre `follower` is a follower, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_follower_recv(struct rnet_follower *follower,
                                  int64_t timeout_ns,
                                  const struct rnet_followed_message **out,
                                  struct rnet_error **error);

/**
 * The type of the last message, as its publisher declares it. The caller frees it with rnet_type_free().
 *
 * Errors: RNET_BAD_VALUE if it cannot be read; RNET_INVALID_ARGUMENT if the last call did not give a message.
 *
 * @pre `follower` is a follower, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_follower_type(struct rnet_follower *follower,
                                  struct rnet_type **out,
                                  struct rnet_error **error);

/**
 * Closes a follower: its calls fail with RNET_CLOSED from then on, and a wait of another thread ends. Null is
 * allowed.
 *
 * @pre `follower` is null or was not freed.
 */
void rnet_follower_close(struct rnet_follower *follower);

/**
 * Frees a follower. Null is allowed. No other thread may be about to use it.
 *
 * @pre `follower` is null or was not freed.
 */
void rnet_follower_free(struct rnet_follower *follower);

/**
 * Watches the nodes of a domain. Present nodes are reported first, as joined. The caller frees the watcher with
 * rnet_node_watcher_free().
 *
 * Errors: RNET_NO_PERMISSION, RNET_LAYOUT_VERSION, RNET_IO.
 *
 * @pre `domain` is a domain, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_domain_watch_nodes(const struct rnet_domain *domain,
                                       struct rnet_node_watcher **out,
                                       struct rnet_error **error);

/**
 * Waits until a node joins, leaves or dies, for at most `timeout_ns`: RNET_FOREVER waits without a limit, 0 does not
 * wait.
 *
 * `*out` is valid until the next call with this watcher, also if another thread closes it; null if nothing has happened
 * and `timeout_ns` is 0.
 *
 * Errors: RNET_TIMEOUT, RNET_NO_PERMISSION, RNET_LAYOUT_VERSION, RNET_IO, RNET_CLOSED, RNET_WRONG_THREAD.
 *
 * @pre `watcher` is a watcher, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_node_watcher_recv(struct rnet_node_watcher *watcher,
                                      int64_t timeout_ns,
                                      const struct rnet_watched_node **out,
                                      struct rnet_error **error);

/**
 * Closes a watcher: its calls fail with RNET_CLOSED from then on, and a wait of another thread ends. Null is
 * allowed.
 *
 * @pre `watcher` is null or was not freed.
 */
void rnet_node_watcher_close(struct rnet_node_watcher *watcher);

/**
 * Frees a watcher. Null is allowed. No other thread may be about to use it.
 *
 * @pre `watcher` is null or was not freed.
 */
void rnet_node_watcher_free(struct rnet_node_watcher *watcher);

/**
 * Calls `callbacks` for events of a publisher, until the guard is freed.
 *
 * This and the following functions: the caller frees the guard with rnet_guard_free(), or detaches it with
 * rnet_guard_detach(). `free_context` is called once with `context` after the last call, also if the function
 * fails. Errors: RNET_CLOSED, RNET_WRONG_THREAD, RNET_INVALID_ARGUMENT.
 *
 * @pre `publisher` is a publisher, `callbacks` initialised, `out` valid for a write, `error` null or valid for a write.
 * The functions and the context may be used by other threads.
 */
enum rnet_code rnet_publisher_on_event(struct rnet_publisher *publisher,
                                       const struct rnet_event_callbacks *callbacks,
                                       void *context,
                                       rnet_free_function free_context,
                                       struct rnet_guard **out,
                                       struct rnet_error **error);

/**
 * Calls `callbacks` for events of a subscriber. See rnet_publisher_on_event().
 *
 * @pre `subscriber` is a subscriber; otherwise as for rnet_publisher_on_event().
 */
enum rnet_code rnet_subscriber_on_event(struct rnet_subscriber *subscriber,
                                        const struct rnet_event_callbacks *callbacks,
                                        void *context,
                                        rnet_free_function free_context,
                                        struct rnet_guard **out,
                                        struct rnet_error **error);

/**
 * As rnet_subscriber_on_event(), for a subscription.
 *
 * @pre `subscription` is a subscription; otherwise as for rnet_publisher_on_event().
 */
enum rnet_code rnet_subscription_on_event(const struct rnet_subscription *subscription,
                                          const struct rnet_event_callbacks *callbacks,
                                          void *context,
                                          rnet_free_function free_context,
                                          struct rnet_guard **out,
                                          struct rnet_error **error);

/**
 * Calls `callback` when nodes of the domain join, leave or die. Nodes of other hosts count as died also when their
 * host is not reachable. See rnet_publisher_on_event().
 *
 * @pre `node` is a node; otherwise as for rnet_publisher_on_event().
 */
enum rnet_code rnet_node_on_node(const struct rnet_node *node,
                                 rnet_node_event_function callback,
                                 void *context,
                                 rnet_free_function free_context,
                                 struct rnet_guard **out,
                                 struct rnet_error **error);

/**
 * Calls `callback` for each publisher and subscriber of the domain, including those of this node: once for each that
 * exists, then when one is opened or closed. See rnet_publisher_on_event(); also RNET_IO.
 *
 * @pre As for rnet_node_on_node().
 */
enum rnet_code rnet_node_on_endpoint(const struct rnet_node *node,
                                     rnet_endpoint_function callback,
                                     void *context,
                                     rnet_free_function free_context,
                                     struct rnet_guard **out,
                                     struct rnet_error **error);

/**
 * Opens a domain for inspection, without joining it. It need not exist yet. The caller frees it with
 * rnet_domain_free().
 *
 * Null for `domain`, `dir` or `group` means the value of the environment, as in rnet_node_options.
 *
 * Errors: RNET_BAD_NAME, RNET_NO_PERMISSION, RNET_LAYOUT_VERSION.
 *
 * @pre `domain`, `dir` and `group` are null or strings, `out` is valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_domain_open(const char *domain,
                                const char *dir,
                                const char *group,
                                struct rnet_domain **out,
                                struct rnet_error **error);

/** The id of a domain, valid until it is freed; "" if `domain` is null. */
const char *rnet_domain_id(const struct rnet_domain *domain);

/**
 * Frees a domain. Its snapshots, followers and node watchers stay valid. Null is allowed.
 *
 * @pre `domain` is null or was not freed.
 */
void rnet_domain_free(struct rnet_domain *domain);

/**
 * Inspects a domain: all of it, or, if `topic` is not null, all nodes and the endpoints of this topic. The caller
 * frees the snapshot with rnet_snapshot_free(). A domain that does not exist has an empty snapshot.
 *
 * Errors: RNET_BAD_NAME, RNET_NO_PERMISSION, RNET_LAYOUT_VERSION, RNET_IO. Problems of single nodes are in
 * rnet_snapshot_describe().
 *
 * @pre `domain` is a domain, `topic` null or a string, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_domain_snapshot(struct rnet_domain *domain,
                                    const char *topic,
                                    struct rnet_snapshot **out,
                                    struct rnet_error **error);

/** The numbers of elements, and what is wrong, valid as long as the snapshot. Null if `snapshot` is null. */
const struct rnet_snapshot_info *rnet_snapshot_describe(const struct rnet_snapshot *snapshot);

/**
 * A node, by name, those of other hosts last. Valid as long as the snapshot; null if `at` is not less than their
 * number.
 */
const struct rnet_node_info *rnet_snapshot_node(const struct rnet_snapshot *snapshot,
                                                size_t at);

/** A topic, by name. Valid as long as the snapshot; null if `at` is not less than their number. */
const struct rnet_topic_info *rnet_snapshot_topic(const struct rnet_snapshot *snapshot, size_t at);

/**
 * A server, by service and node. Valid as long as the snapshot; null if `at` is not less than their number.
 */
const struct rnet_service_info *rnet_snapshot_service(const struct rnet_snapshot *snapshot,
                                                      size_t at);

/**
 * The type of a topic: that of its first publisher, else of its first subscription. The caller frees it with
 * rnet_type_free().
 *
 * Errors: RNET_BAD_VALUE if no endpoint has the topic, or the type cannot be read.
 *
 * @pre `snapshot` is a snapshot, `topic` a string, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_snapshot_topic_type(const struct rnet_snapshot *snapshot,
                                        const char *topic,
                                        struct rnet_type **out,
                                        struct rnet_error **error);

/**
 * All that the snapshot contains, as JSON. Ids are texts, because many programs keep only 53 bits of a number. The
 * caller frees the text with rnet_buffer_free().
 *
 * @pre `snapshot` is a snapshot, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_snapshot_to_json(const struct rnet_snapshot *snapshot,
                                     struct rnet_buffer **out,
                                     struct rnet_error **error);

/**
 * Frees a snapshot. Null is allowed.
 *
 * @pre `snapshot` is null or was not freed.
 */
void rnet_snapshot_free(struct rnet_snapshot *snapshot);

/** The bytes of a buffer, valid until it is freed. Empty if `buffer` is null. */
struct rnet_bytes rnet_buffer_bytes(const struct rnet_buffer *buffer);

/**
 * The bytes of a buffer as a text that ends with NUL, valid until the buffer is freed; "" if `buffer` is null.
 */
const char *rnet_buffer_text(const struct rnet_buffer *buffer);

/**
 * Frees a buffer. Null is allowed.
 *
 * @pre `buffer` is null or was not freed.
 */
void rnet_buffer_free(struct rnet_buffer *buffer);

/**
 * The description of a type as JSON: the fields of a plain type, the name of a protobuf type. The caller frees it
 * with rnet_buffer_free().
 *
 * @pre `ty` is null or a type, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_type_to_json(const struct rnet_type *ty,
                                 struct rnet_buffer **out,
                                 struct rnet_error **error);

/**
 * A message as JSON: ProtoJSON for protobuf, an object of the fields for a plain type. The caller frees it with
 * rnet_buffer_free().
 *
 * Errors: RNET_BAD_VALUE if the bytes are not a message of the type, or the type is raw bytes.
 *
 * @pre `ty` is null or a type, `message` a valid view, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_message_to_json(const struct rnet_type *ty,
                                    struct rnet_bytes message,
                                    struct rnet_buffer **out,
                                    struct rnet_error **error);

/**
 * The bytes of a message that JSON describes, as rnet_message_to_json() writes it. Fields that are absent are zero.
 * The caller frees them with rnet_buffer_free().
 *
 * Errors: RNET_BAD_VALUE, with the field, if the text is not JSON or does not match the type.
 *
 * @pre `ty` is null or a type, `json` a string, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_message_from_json(const struct rnet_type *ty,
                                      const char *json,
                                      struct rnet_buffer **out,
                                      struct rnet_error **error);

/**
 * Logs a line at an rnet_log_level. `file` and `line` are its place in the source, __FILE__ and __LINE__; null and 0
 * if unknown.
 *
 * Logging never blocks, and has no errors: a line that cannot be published goes to stderr. At most 100 lines per
 * second from one place, and 1,000 from a node, are logged; suppressed lines are counted and reported once per second.
 * Without effect on a null or closed node, and for a number that is not a level. Any thread may call it.
 *
 * @pre `node` is null or a node; `text` and `file` are null or strings.
 */
void rnet_node_log(const struct rnet_node *node,
                   int32_t level,
                   const char *text,
                   const char *file,
                   uint32_t line);

/**
 * As rnet_node_log(), for a sink of another logging library: ignores the level of the node, and does not print on
 * stderr.
 *
 * @pre As for rnet_node_log().
 */
void rnet_node_publish_log(const struct rnet_node *node,
                           int32_t level,
                           const char *text,
                           const char *file,
                           uint32_t line);

/**
 * The lowest level that is logged, an rnet_log_level: RNET_LOG, or info. 0 if `node` is null or closed.
 *
 * @pre `node` is null or a node.
 */
int32_t rnet_node_log_level(const struct rnet_node *node);

/**
 * Drops lines below `level` from now on. Without effect if it is not an rnet_log_level.
 *
 * @pre `node` is null or a node.
 */
void rnet_node_set_log_level(const struct rnet_node *node, int32_t level);

/**
 * Whether lines of `level` are logged: to skip the formatting of others.
 *
 * @pre `node` is null or a node.
 */
bool rnet_node_is_log_enabled(const struct rnet_node *node, int32_t level);

/**
 * Number of lines suppressed by the limits since the node was opened.
 *
 * @pre `node` is null or a node.
 */
uint64_t rnet_node_suppressed_log_count(const struct rnet_node *node);

/**
 * A counter of malformed messages of a subscriber, for programs that decode messages themselves. The caller frees it
 * with rnet_malformed_counter_free().
 *
 * Errors: RNET_CLOSED, RNET_WRONG_THREAD.
 *
 * @pre `subscriber` is a subscriber, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_malformed_counter_new(struct rnet_subscriber *subscriber,
                                          struct rnet_malformed_counter **out,
                                          struct rnet_error **error);

/**
 * Counts a message as malformed, and makes its error: always RNET_MALFORMED, unless an argument is invalid.
 *
 * `publisher` is rnet_sample_publisher() of the message, `why` the reason.
 *
 * @pre `counter` is a counter, `why` a string, `error` null or valid for a write.
 */
enum rnet_code rnet_malformed_counter_count(const struct rnet_malformed_counter *counter,
                                            uint64_t publisher,
                                            const char *why,
                                            struct rnet_error **error);

/**
 * Frees a counter. Null is allowed.
 *
 * @pre `counter` is null or was not freed.
 */
void rnet_malformed_counter_free(struct rnet_malformed_counter *counter);

/**
 * Joins a domain. The caller frees the node with rnet_node_free().
 *
 * Errors: RNET_BAD_NAME, RNET_NAME_TAKEN, RNET_NO_PERMISSION, RNET_LAYOUT_VERSION, RNET_LIMIT_REACHED, RNET_IO.
 *
 * @pre `name` is a NUL-terminated string; `options` is null or initialised; `out` is valid for a write; `error` is null
 * or valid for a write.
 */
enum rnet_code rnet_node_new(const char *name,
                             const struct rnet_node_options *options,
                             struct rnet_node **out,
                             struct rnet_error **error);

/**
 * Closes the node, its endpoints, and all other objects that it created: their calls fail with RNET_CLOSED from
 * then on, and waits end. The objects must still be freed. Returns when no callback of the node runs, except
 * within a callback. Null and a closed node are allowed.
 *
 * @pre `node` is null or a node that was not freed.
 */
void rnet_node_close(struct rnet_node *node);

/**
 * Frees a node. The objects that it created keep it alive, until the last of them is freed or closed; see
 * rnet_node_close(). Null is allowed.
 *
 * @pre `node` is null or a node that was not freed.
 */
void rnet_node_free(struct rnet_node *node);

/**
 * The name of the node, with its namespace. Valid until the node is freed; "" if `node` is null.
 *
 * @pre `node` is null or a node that was not freed.
 */
const char *rnet_node_name(const struct rnet_node *node);

/**
 * The domain of the node. Valid until the node is freed; "" if `node` is null.
 *
 * @pre `node` is null or a node that was not freed.
 */
const char *rnet_node_domain(const struct rnet_node *node);

/**
 * The time of the node in ns: CLOCK_MONOTONIC, or the simulated time that it follows.
 *
 * @pre `node` is a node that was not freed; `out` is valid for a write; `error` is null or valid for a write.
 */
enum rnet_code rnet_node_now(const struct rnet_node *node,
                             uint64_t *out,
                             struct rnet_error **error);

/** The version of the library: "0.1.0". Never freed. */
const char *rnet_version(void);

/** The time of the host in ns: CLOCK_MONOTONIC, as in the stamps of messages. */
uint64_t rnet_now_ns(void);

/**
 * Declares a parameter of a node: its key in the state is /params/<node>/<name>. A stored value is kept if
 * it is allowed. `on_change` may be null; it is called with each new value of any writer, on a thread of the
 * node, until the parameter is freed. `free_context` is called once with `context` after the last call, also
 * if this function fails. The caller frees the parameter with rnet_param_free().
 *
 * Errors: RNET_BAD_NAME; RNET_BAD_VALUE if the options contradict each other or an earlier declaration, or
 * if there is neither a valid value nor a default; those of writing state.
 *
 * @pre `node` is a node, `name` a string, `options` null or initialised, `out` valid for a write, `error` null or
 * valid for a write. The function and the context may be used by other threads.
 */
enum rnet_code rnet_param_declare(const struct rnet_node *node,
                                  const char *name,
                                  const struct rnet_param_options *options,
                                  rnet_value_function on_change,
                                  void *context,
                                  rnet_free_function free_context,
                                  struct rnet_param **out,
                                  struct rnet_error **error);

/**
 * Calls `on_change` with each new value of any writer, on a thread of the node, until the guard is freed.
 * `free_context` is called once with `context` after the last call, also if this function fails.
 *
 * Errors: RNET_LIMIT_REACHED, RNET_OUT_OF_MEMORY, RNET_CLOSED.
 *
 * @pre `param` is a parameter, `out` valid for a write, `error` null or valid for a write. The function and the
 * context may be used by other threads.
 */
enum rnet_code rnet_param_on_change(const struct rnet_param *param,
                                    rnet_value_function on_change,
                                    void *context,
                                    rnet_free_function free_context,
                                    struct rnet_guard **out,
                                    struct rnet_error **error);

/**
 * The current value, which the caller frees with rnet_value_free().
 *
 * Errors: RNET_BAD_VALUE if it has no default and its value was deleted, or if a faulty program has written
 * it; RNET_CLOSED.
 *
 * @pre `param` is a parameter, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_param_get(const struct rnet_param *param,
                              struct rnet_value **out,
                              struct rnet_error **error);

/**
 * The current value of a parameter of kind bool, int or float. It never waits and does not allocate, so that a control
 * loop may call it.
 *
 * Errors: RNET_STATE_TYPE if it has another kind; as rnet_param_get().
 *
 * @pre `param` is a parameter, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_param_read(const struct rnet_param *param,
                               struct rnet_value_data *out,
                               struct rnet_error **error);

/**
 * Sets the value. An integer becomes a float for a parameter of kind float.
 *
 * Errors: RNET_BAD_VALUE with the reason if it is not allowed, or the parameter is read-only; as
 * rnet_state_set().
 *
 * @pre `param` is a parameter, `value` a value, `error` null or valid for a write.
 */
enum rnet_code rnet_param_set(const struct rnet_param *param,
                              const struct rnet_value *value,
                              struct rnet_error **error);

/**
 * Resets it to its default, as if it had never been set.
 *
 * Errors: RNET_BAD_VALUE if it has no default, or is read-only.
 *
 * @pre `param` is a parameter, `error` null or valid for a write.
 */
enum rnet_code rnet_param_reset(const struct rnet_param *param, struct rnet_error **error);

/**
 * The declaration of a parameter, valid until the parameter is freed; its `value` is null: see rnet_param_get(). Null if
 * `param` is null.
 */
const struct rnet_param_info *rnet_param_describe(const struct rnet_param *param);

/**
 * Ends its callback and frees it; the value stays. When it returns, the callback does not run and is not
 * called again, except within a callback. Null is allowed.
 *
 * @pre `param` is null or was not freed.
 */
void rnet_param_free(struct rnet_param *param);

/**
 * The parameters of all nodes of the domain or of the other host, declared or only set, sorted by key. The caller frees
 * the list.
 *
 * Errors: for another host as rnet_state_list().
 *
 * @pre `state` is a state, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_state_params(const struct rnet_state *state,
                                 struct rnet_param_list **out,
                                 struct rnet_error **error);

/**
 * Resets a parameter of any node to its default.
 *
 * Errors: RNET_BAD_NAME; RNET_BAD_VALUE if it is not declared, has no default, or is read-only and its node
 * runs.
 *
 * @pre `state` is a state, `node` and `name` are strings, `error` is null or valid for a write.
 */
enum rnet_code rnet_state_reset_param(const struct rnet_state *state,
                                      const char *node,
                                      const char *name,
                                      struct rnet_error **error);

/** A parameter of a list, valid as long as the list; null if there is none at this index. */
const struct rnet_param_info *rnet_param_list_get(const struct rnet_param_list *list, size_t index);

/**
 * Frees a list. Null is allowed.
 *
 * @pre `list` is null or was not freed.
 */
void rnet_param_list_free(struct rnet_param_list *list);

/**
 * Creates a publisher of a topic. The caller frees it with rnet_publisher_free().
 *
 * Errors: RNET_BAD_NAME, RNET_BAD_QOS, RNET_LIMIT_REACHED, RNET_OUT_OF_MEMORY, RNET_CLOSED.
 *
 * @pre `node` is a node, `topic` a string, `options` null or initialised, `out` valid for a write, `error` null or valid
 * for a write.
 */
enum rnet_code rnet_publisher_new(const struct rnet_node *node,
                                  const char *topic,
                                  const struct rnet_publisher_options *options,
                                  struct rnet_publisher **out,
                                  struct rnet_error **error);

/**
 * Sends one message. On an error it was not sent.
 *
 * Errors: RNET_FULL if a reliable subscriber is full and `on_full` did not help; RNET_OUT_OF_MEMORY and
 * RNET_MESSAGE_TOO_LARGE for large messages; RNET_BAD_VALUE if the length does not match a plain type; RNET_CLOSED,
 * RNET_WRONG_THREAD.
 *
 * @pre `publisher` is a publisher, `data` valid for reads of `len` bytes, `error` null or valid for a write.
 */
enum rnet_code rnet_publisher_send(struct rnet_publisher *publisher,
                                   const uint8_t *data,
                                   size_t len,
                                   struct rnet_error **error);

/**
 * As rnet_publisher_send(), with metadata.
 *
 * @pre As for rnet_publisher_send(); `meta` is null or initialised.
 */
enum rnet_code rnet_publisher_send_with(struct rnet_publisher *publisher,
                                        const uint8_t *data,
                                        size_t len,
                                        const struct rnet_meta *meta,
                                        struct rnet_error **error);

/**
 * Lends memory for a message of `len` bytes: of a publisher whose message has more than 4096, the memory that its
 * subscribers read, so that nothing is copied. Its bytes have arbitrary values. The caller sends it with
 * rnet_loan_send(), and frees it with rnet_loan_free().
 *
 * Errors: RNET_OUT_OF_MEMORY, RNET_MESSAGE_TOO_LARGE, RNET_FULL, RNET_BAD_VALUE, RNET_CLOSED, RNET_WRONG_THREAD.
 *
 * @pre `publisher` is a publisher, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_publisher_loan(struct rnet_publisher *publisher,
                                   size_t len,
                                   struct rnet_loan **out,
                                   struct rnet_error **error);

/**
 * The memory of a loan, 8-byte aligned, valid until it is sent or freed, even if its publisher is closed before.
 * Empty if `loan` is null or was sent.
 *
 * @pre `loan` is null or was not freed.
 */
struct rnet_mut_bytes rnet_loan_data(const struct rnet_loan *loan);

/**
 * Shortens a loan: only its first `len` bytes are sent. Its memory does not move.
 *
 * Errors: RNET_BAD_VALUE if `len` exceeds its length; RNET_CLOSED if it was sent.
 *
 * @pre `loan` is a loan, `error` null or valid for a write.
 */
enum rnet_code rnet_loan_truncate(struct rnet_loan *loan, size_t len, struct rnet_error **error);

/**
 * Sends a loan. On an error it was not sent, keeps its content, and may be sent again. It must still be freed.
 *
 * Errors: as for rnet_publisher_send(); RNET_CLOSED also for a loan that was sent.
 *
 * @pre `loan` is a loan, `error` null or valid for a write.
 */
enum rnet_code rnet_loan_send(struct rnet_loan *loan,
                              struct rnet_error **error);

/**
 * As rnet_loan_send(), with metadata.
 *
 * @pre As for rnet_loan_send(); `meta` is null or initialised.
 */
enum rnet_code rnet_loan_send_with(struct rnet_loan *loan,
                                   const struct rnet_meta *meta,
                                   struct rnet_error **error);

/**
 * Frees a loan. If it was not sent, nothing is sent. Null is allowed.
 *
 * @pre `loan` is null or was not freed.
 */
void rnet_loan_free(struct rnet_loan *loan);

/**
 * Waits until at least `count` subscribers are matched: messages sent after that reach them.
 *
 * Errors: RNET_TIMEOUT; once for each subscriber that cannot be matched, RNET_INCOMPATIBLE_TYPE,
 * RNET_INCOMPATIBLE_QOS or RNET_LIMIT_REACHED; RNET_CLOSED, RNET_WRONG_THREAD.
 *
 * @pre `publisher` is a publisher, `error` null or valid for a write.
 */
enum rnet_code rnet_publisher_wait_for_subscribers(struct rnet_publisher *publisher,
                                                   size_t count,
                                                   int64_t timeout_ns,
                                                   struct rnet_error **error);

/**
 * Number of subscribers that are served now.
 *
 * @pre `publisher` is a publisher, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_publisher_subscriber_count(struct rnet_publisher *publisher,
                                               size_t *out,
                                               struct rnet_error **error);

/**
 * Shows that a publisher with a liveliness lease is alive.
 *
 * @pre `publisher` is a publisher, `error` null or valid for a write.
 */
enum rnet_code rnet_publisher_assert_alive(struct rnet_publisher *publisher,
                                           struct rnet_error **error);

/**
 * Sets the message that each subscriber receives if this process dies; at most 4096 bytes. `data` null removes it.
 *
 * @pre `publisher` is a publisher, `data` null or valid for reads of `len` bytes, `error` null or valid for a write.
 */
enum rnet_code rnet_publisher_set_last_will(struct rnet_publisher *publisher,
                                            const uint8_t *data,
                                            size_t len,
                                            struct rnet_error **error);

/**
 * Closes a publisher: waits for at most `timeout_ns` until its reliable subscribers have read its large messages. Its
 * calls fail with RNET_CLOSED from then on. Must still be freed. A closed publisher is allowed. If a loan exists, it
 * does not wait, and the publisher lives on until the loan is freed.
 *
 * Errors: RNET_TIMEOUT if some are unread: they are lost, and counted by their subscribers.
 *
 * @pre `publisher` is a publisher, `error` null or valid for a write.
 */
enum rnet_code rnet_publisher_close(struct rnet_publisher *publisher,
                                    int64_t timeout_ns,
                                    struct rnet_error **error);

/**
 * Closes and frees a publisher without waiting. Null is allowed. No other thread may be about to use it.
 *
 * @pre `publisher` is null or was not freed.
 */
void rnet_publisher_free(struct rnet_publisher *publisher);

/**
 * Opens the sending end of a work queue; its workers may start later. The caller frees it with
 * rnet_pusher_free().
 *
 * `on_undelivered` may be null: the node then logs the reason. `free_context` is called once with `context`
 * after the last call, also if this function fails.
 *
 * Errors: RNET_BAD_NAME, RNET_BAD_VALUE, RNET_LIMIT_REACHED, RNET_OUT_OF_MEMORY, RNET_CLOSED.
 *
 * @pre `node` is a node, `name` a string, `options` null or initialised, `out` valid for a write, `error` null or
 * valid for a write. The function and the context may be used by other threads.
 */
enum rnet_code rnet_pusher_new(const struct rnet_node *node,
                               const char *name,
                               const struct rnet_pusher_options *options,
                               rnet_undelivered_function on_undelivered,
                               void *context,
                               rnet_free_function free_context,
                               struct rnet_pusher **out,
                               struct rnet_error **error);

/**
 * Adds a job, whose bytes are copied. It goes to the next free worker; if that worker is lost before it
 * acknowledges, once more to another one. Waits while the backlog is full for at most `timeout_ns`; 0: the
 * `wait_for_capacity_ns` of the options.
 *
 * Errors: RNET_LIMIT_REACHED if the backlog is full after that time: the job was not accepted; RNET_BAD_VALUE,
 * RNET_CLOSED.
 *
 * @pre `pusher` is a pusher, `data` valid for reads of `len` bytes, `error` null or valid for a write.
 */
enum rnet_code rnet_pusher_push(const struct rnet_pusher *pusher,
                                const uint8_t *data,
                                size_t len,
                                int64_t timeout_ns,
                                struct rnet_error **error);

/**
 * Waits until every job has been acknowledged or returned, for at most `timeout_ns`.
 *
 * Errors: RNET_TIMEOUT, RNET_CLOSED.
 *
 * @pre `pusher` is a pusher, `error` null or valid for a write.
 */
enum rnet_code rnet_pusher_wait_until_done(const struct rnet_pusher *pusher,
                                           int64_t timeout_ns,
                                           struct rnet_error **error);

/**
 * The name of the queue, with its leading slash. Valid until the pusher is freed; "" if `pusher` is null.
 *
 * @pre `pusher` is null or was not freed.
 */
const char *rnet_pusher_name(const struct rnet_pusher *pusher);

/**
 * The counters of a pusher.
 *
 * @pre `pusher` is a pusher, `out` initialised, `error` null or valid for a write.
 */
enum rnet_code rnet_pusher_get_stats(const struct rnet_pusher *pusher,
                                     struct rnet_push_stats *out,
                                     struct rnet_error **error);

/**
 * Closes a pusher: unfinished jobs are returned as undelivered, with RNET_CLOSED, before this returns; waits
 * of other threads end. Null and a closed pusher are allowed.
 *
 * @pre `pusher` is null or was not freed.
 */
void rnet_pusher_close(const struct rnet_pusher *pusher);

/**
 * Closes and frees a pusher. Null is allowed. No other thread may be about to use it.
 *
 * @pre `pusher` is null or was not freed.
 */
void rnet_pusher_free(struct rnet_pusher *pusher);

/**
 * Opens a worker, which receives jobs with rnet_puller_recv(). The caller frees it with rnet_puller_free().
 *
 * Errors: RNET_BAD_NAME, RNET_BAD_VALUE, RNET_LIMIT_REACHED, RNET_OUT_OF_MEMORY, RNET_CLOSED.
 *
 * @pre `node` is a node, `name` a string, `options` null or initialised, `out` valid for a write, `error` null or
 * valid for a write.
 */
enum rnet_code rnet_puller_new(const struct rnet_node *node,
                               const char *name,
                               const struct rnet_puller_options *options,
                               struct rnet_puller **out,
                               struct rnet_error **error);

/**
 * Opens a worker whose jobs go to `handler`, one at a time: a job whose handler returns is acknowledged,
 * unless it has called rnet_request_fail(). The caller frees the worker with rnet_service_free().
 *
 * If the worker closes, a job whose handler has asked for the cancellation, and saw it, goes to
 * another worker.
 *
 * `free_context` is called once with `context` after the last call, also if this function fails.
 *
 * Errors: as for rnet_puller_new().
 *
 * @pre As for rnet_service_new().
 */
enum rnet_code rnet_pull_on(const struct rnet_node *node,
                            const char *name,
                            const struct rnet_puller_options *options,
                            rnet_request_function handler,
                            void *context,
                            rnet_free_function free_context,
                            struct rnet_service **out,
                            struct rnet_error **error);

/**
 * Waits for the next job, for at most `timeout_ns`. It comes once the previous one was acknowledged or
 * failed. The caller frees it with rnet_job_free(). `*out` becomes null if none has arrived and `timeout_ns`
 * is 0, which is not an error.
 *
 * Errors: RNET_TIMEOUT, RNET_CLOSED.
 *
 * @pre `puller` is a worker, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_puller_recv(const struct rnet_puller *puller,
                                int64_t timeout_ns,
                                struct rnet_job **out,
                                struct rnet_error **error);

/**
 * The name of the queue, with its leading slash. Valid until the worker is freed; "" if `puller` is null.
 *
 * @pre `puller` is null or was not freed.
 */
const char *rnet_puller_name(const struct rnet_puller *puller);

/**
 * The counters of a worker: `calls` are jobs, `refused` the jobs that arrived while it had one or was
 * closing.
 *
 * @pre `puller` is a worker, `out` initialised, `error` null or valid for a write.
 */
enum rnet_code rnet_puller_get_stats(const struct rnet_puller *puller,
                                     struct rnet_service_stats *out,
                                     struct rnet_error **error);

/**
 * Closes a worker, and ends waits of other threads: its current job goes to another worker. Null and a
 * closed worker are allowed.
 *
 * @pre `puller` is null or was not freed.
 */
void rnet_puller_close(const struct rnet_puller *puller);

/**
 * Closes and frees a worker. Null is allowed. No other thread may be about to use it.
 *
 * @pre `puller` is null or was not freed.
 */
void rnet_puller_free(struct rnet_puller *puller);

/**
 * The bytes of a job, 8-byte aligned, valid until it is acknowledged, failed or freed, also if another thread closes
 * its node. Empty if `job` is null, was acknowledged or failed, or its node is closed.
 *
 * @pre `job` is null or was not freed.
 */
struct rnet_bytes rnet_job_data(const struct rnet_job *job);

/**
 * The node that pushed the job. Valid until it is freed; "" if `job` is null.
 *
 * @pre `job` is null or was not freed.
 */
const char *rnet_job_pusher(const struct rnet_job *job);

/**
 * Whether another worker had the job, and was lost or did not acknowledge it in time: it may be done. False
 * if `job` is null.
 *
 * @pre `job` is null or was not freed.
 */
bool rnet_job_redelivered(const struct rnet_job *job);

/**
 * Whether the acknowledgement is no longer wanted: the pusher is gone or no longer waits, or the worker is
 * closing. True for a job that was acknowledged or failed, and if `job` is null.
 *
 * @pre `job` is null or was not freed.
 */
bool rnet_job_is_cancelled(const struct rnet_job *job);

/**
 * Acknowledges a job as done. It must still be freed.
 *
 * Errors: RNET_CLOSED if it was acknowledged or failed, or its node was closed.
 *
 * @pre `job` is a job, `error` null or valid for a write.
 */
enum rnet_code rnet_job_ack(struct rnet_job *job, struct rnet_error **error);

/**
 * Fails a job: its pusher gets RNET_CALL_FAILED with the kind and the text, and it does not go to another
 * worker. It must still be freed. `kind` and `text` are as for rnet_request_fail().
 *
 * Errors: as for rnet_job_ack().
 *
 * @pre `job` is a job, `kind` and `text` are null or strings, `error` is null or valid for a write.
 */
enum rnet_code rnet_job_fail(struct rnet_job *job,
                             const char *kind,
                             const char *text,
                             struct rnet_error **error);

/**
 * Frees a job. If it was neither acknowledged nor failed, it fails, with the kind "not_acknowledged". Null
 * is allowed.
 *
 * @pre `job` is null or was not freed.
 */
void rnet_job_free(struct rnet_job *job);

/**
 * Starts to record into `file`, which must not exist. When it returns, every message that a followed publisher sends
 * is recorded or counted as missing. The caller frees the recorder with rnet_recorder_free().
 *
 * Errors: RNET_RECORD_FAILED if the file exists or cannot be created, or if options contradict each other;
 * RNET_BAD_NAME for a pattern; RNET_NO_PERMISSION, RNET_LAYOUT_VERSION.
 *
 * @pre `file` is a string, `options` null or initialised, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_recorder_start(const char *file,
                                   const struct rnet_recorder_options *options,
                                   struct rnet_recorder **out,
                                   struct rnet_error **error);

/**
 * The progress so far, with the notes since the last report. The caller frees the report with
 * rnet_recorder_report_free().
 *
 * @pre `recorder` is a recorder, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_recorder_progress(struct rnet_recorder *recorder,
                                      struct rnet_recorder_report **out,
                                      struct rnet_error **error);

/**
 * Completes the file with all messages that were sent before, and gives the result. The caller frees the report with
 * rnet_recorder_report_free(), and the recorder with rnet_recorder_free(); other calls fail with RNET_CLOSED.
 *
 * Errors: RNET_RECORD_FAILED with the reason for which the recording ended before; the file is complete up to there.
 * RNET_CLOSED if it was stopped before.
 *
 * @pre `recorder` is a recorder, `out` null or valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_recorder_stop(struct rnet_recorder *recorder,
                                  struct rnet_recorder_report **out,
                                  struct rnet_error **error);

/**
 * Stops the recorder as rnet_recorder_stop() does, and frees it. Null is allowed.
 *
 * @pre `recorder` is null or was not freed.
 */
void rnet_recorder_free(struct rnet_recorder *recorder);

/** The numbers of a report, valid as long as the report. Null if `report` is null. */
const struct rnet_recorder_info *rnet_recorder_report_describe(const struct rnet_recorder_report *report);

/**
 * Missing messages of one topic, node and cause, valid as long as the report. Null if `at` is not less than their
 * number.
 */
const struct rnet_recorder_loss *rnet_recorder_report_loss(const struct rnet_recorder_report *report,
                                                           size_t at);

/**
 * Frees a report. Null is allowed.
 *
 * @pre `report` is null or was not freed.
 */
void rnet_recorder_report_free(struct rnet_recorder_report *report);

/**
 * Opens an MCAP file by its index, without reading its messages. A file without an index is read once to its end: it
 * is still being written, or its recorder was killed. The caller frees the recording with rnet_recording_free().
 *
 * Errors: RNET_READ_FAILED, with the path, if it cannot be read, is not an MCAP file, or has a later format version.
 * Other problems are in rnet_recording_describe().
 *
 * @pre `path` is a string, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_recording_open(const char *path,
                                   struct rnet_recording **out,
                                   struct rnet_error **error);

/** What the recording contains, valid as long as the recording. Null if `recording` is null. */
const struct rnet_recording_info *rnet_recording_describe(const struct rnet_recording *recording);

/**
 * A channel, valid as long as the recording and its iterators. Null if `at` is not less than the number of channels.
 */
const struct rnet_recorded_channel *rnet_recording_channel(const struct rnet_recording *recording,
                                                           size_t at);

/**
 * An entry of the metadata records, in the order of the file. Valid as long as the recording. Null if `at` is not
 * less than their number.
 */
const struct rnet_recorded_entry *rnet_recording_metadata(const struct rnet_recording *recording,
                                                          size_t at);

/**
 * The type of the messages of a channel: as published, protobuf for ROS 2, raw bytes for other encodings. The caller
 * frees it with rnet_type_free().
 *
 * Errors: RNET_READ_FAILED if its description cannot be read.
 *
 * @pre `recording` is a recording, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_recording_type(const struct rnet_recording *recording,
                                   size_t channel,
                                   struct rnet_type **out,
                                   struct rnet_error **error);

/**
 * Checks whether messages of a channel can be read as `wanted`, as a subscriber does with its publisher. Null or raw
 * bytes can always be read.
 *
 * Errors: RNET_INCOMPATIBLE_TYPE with the first difference; RNET_READ_FAILED if the type of the channel cannot be
 * read.
 *
 * @pre `recording` is a recording, `wanted` null or a type, `error` null or valid for a write.
 */
enum rnet_code rnet_recording_check_type(const struct rnet_recording *recording,
                                         size_t channel,
                                         const struct rnet_type *wanted,
                                         struct rnet_error **error);

/**
 * Closes a recording. Its iterators stay valid. Null is allowed.
 *
 * @pre `recording` is null or was not freed.
 */
void rnet_recording_free(struct rnet_recording *recording);

/**
 * Reads messages of a recording; all that publishers sent if `select` is null. The caller frees the iterator with
 * rnet_recorded_messages_free().
 *
 * Errors: RNET_READ_FAILED if the recording does not have one of the topics.
 *
 * @pre `recording` is a recording, `select` null or initialised, `out` valid for a write, `error` null or valid for a
 * write.
 */
enum rnet_code rnet_recording_messages(const struct rnet_recording *recording,
                                       const struct rnet_recording_select *select,
                                       struct rnet_recorded_messages **out,
                                       struct rnet_error **error);

/**
 * The next message, valid until the next call with the iterator; `*out` becomes null at the end.
 *
 * Errors: RNET_READ_FAILED, with the path and the place, for a part that cannot be read. The next call continues
 * after it.
 *
 * @pre `messages` is an iterator, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_recorded_messages_next(struct rnet_recorded_messages *messages,
                                           const struct rnet_recorded_message **out,
                                           struct rnet_error **error);

/**
 * Frees an iterator. Null is allowed.
 *
 * @pre `messages` is null or was not freed.
 */
void rnet_recorded_messages_free(struct rnet_recorded_messages *messages);

/**
 * The bytes of the request, of the goal or of the job, 8-byte aligned. Empty if `request` is null.
 *
 * @pre `request` is null or valid.
 */
struct rnet_bytes rnet_request_data(const struct rnet_request *request);

/**
 * The node that sent it. Valid as long as the request; "" if `request` is null.
 *
 * @pre `request` is null or valid.
 */
const char *rnet_request_caller(const struct rnet_request *request);

/**
 * Whether the answer is no longer wanted: the handler should return. For a goal, its answer is then dropped:
 * a handler that has reached the goal does not ask. False if `request` is null.
 *
 * @pre `request` is null or valid.
 */
bool rnet_request_is_cancelled(const struct rnet_request *request);

/**
 * As rnet_request_is_cancelled(), with the reason.
 *
 * @pre `request` is null or valid.
 */
enum rnet_cancel_reason rnet_request_cancel_reason(const struct rnet_request *request);

/**
 * Whether it is a job that another worker had, which was lost or did not acknowledge it in time: it may be
 * done. False for requests, for goals, and if `request` is null.
 *
 * @pre `request` is null or valid.
 */
bool rnet_request_redelivered(const struct rnet_request *request);

/**
 * Answers with the only reply, or with the result of a goal. The bytes are copied, and sent when the handler
 * returns.
 *
 * Errors: RNET_INVALID_ARGUMENT for a job, or if it was answered.
 *
 * @pre `request` is valid, `data` valid for reads of `len` bytes, `error` null or valid for a write.
 */
enum rnet_code rnet_request_answer(struct rnet_request *request,
                                   const uint8_t *data,
                                   size_t len,
                                   struct rnet_error **error);

/**
 * Sends one of several replies of a service now, or feedback of a goal.
 *
 * A caller that expects one reply takes the first. Waits for at most a second if the caller does not read. The replies
 * end when the handler returns. Only the first feedback waits until the caller is connected; feedback that the caller
 * does not read is dropped, and counted at the caller.
 *
 * Errors: RNET_CANCELLED if the caller wants no more replies, or the goal was cancelled: the handler should return;
 * RNET_FULL, RNET_BAD_VALUE, RNET_INCOMPATIBLE_TYPE; RNET_INVALID_ARGUMENT for a job, or if it was answered.
 *
 * @pre As for rnet_request_answer().
 */
enum rnet_code rnet_request_send(struct rnet_request *request,
                                 const uint8_t *data,
                                 size_t len,
                                 struct rnet_error **error);

/**
 * Says that the handler has sent all replies of a stream, which may be none. Needed only if it has sent
 * none.
 *
 * Errors: RNET_INVALID_ARGUMENT for a goal or a job, or if it was answered.
 *
 * @pre `request` is valid, `error` null or valid for a write.
 */
enum rnet_code rnet_request_end(struct rnet_request *request,
                                struct rnet_error **error);

/**
 * Fails the call, the goal or the job: its caller gets RNET_CALL_FAILED with the kind and the text. The node
 * logs it. An earlier answer is dropped; replies that were sent are not. `kind` is for programs, null means
 * "failed"; `text` is for people, null means none.
 *
 * Errors: RNET_INVALID_ARGUMENT.
 *
 * @pre `request` is valid, `kind` and `text` are null or strings, `error` is null or valid for a write.
 */
enum rnet_code rnet_request_fail(struct rnet_request *request,
                                 const char *kind,
                                 const char *text,
                                 struct rnet_error **error);

/**
 * The bytes of the message, valid as long as the sample. Empty if `sample` is null.
 *
 * @pre `sample` is null or valid.
 */
struct rnet_bytes rnet_sample_data(const struct rnet_sample *sample);

/**
 * The id of its publisher, the same for all messages of one. 0 if `sample` is null.
 *
 * @pre `sample` is null or valid.
 */
uint64_t rnet_sample_publisher(const struct rnet_sample *sample);

/**
 * The number of the message, counted by its publisher from 0.
 *
 * @pre `sample` is null or valid.
 */
uint64_t rnet_sample_seq(const struct rnet_sample *sample);

/**
 * When it was sent, in ns of CLOCK_MONOTONIC.
 *
 * @pre `sample` is null or valid.
 */
uint64_t rnet_sample_sent_ns(const struct rnet_sample *sample);

/**
 * When the subscriber took it out of the log, in ns of CLOCK_MONOTONIC. Queued messages are taken together.
 *
 * @pre `sample` is null or valid.
 */
uint64_t rnet_sample_taken_ns(const struct rnet_sample *sample);

/**
 * The time of its source in ns since 1970 UTC, if its publisher has set it; otherwise 0.
 *
 * @pre `sample` is null or valid.
 */
int64_t rnet_sample_source_ns(const struct rnet_sample *sample);

/**
 * Its correlation with another message, if its publisher has set one; otherwise 0.
 *
 * @pre `sample` is null or valid.
 */
uint64_t rnet_sample_correlation(const struct rnet_sample *sample);

/**
 * Whether it is its publisher's last will: the process of the publisher has died.
 *
 * @pre `sample` is null or valid.
 */
bool rnet_sample_is_last_will(const struct rnet_sample *sample);

/**
 * The topic of a borrowed sample; "" if it is owned or null. Valid as long as the sample.
 *
 * @pre `sample` is null or valid, and no other thread uses it.
 */
const char *rnet_sample_topic(const struct rnet_sample *sample);

/**
 * The node of the publisher of a borrowed sample; "" if it is owned or null. Valid as long as the sample.
 *
 * @pre `sample` is null or valid, and no other thread uses it.
 */
const char *rnet_sample_node(const struct rnet_sample *sample);

/**
 * Makes an owned sample of a borrowed one, without copying a large message. The caller frees it. The borrowed
 * sample must not be used afterwards.
 *
 * At most 64 large messages of a publisher can be kept at a time; receiving then fails with RNET_TOO_MANY_PINS.
 *
 * @pre `sample` is valid and borrowed, `out` valid for a write, `error` null or valid for a write. Called by the thread
 * that received the sample.
 */
enum rnet_code rnet_sample_keep(const struct rnet_sample *sample,
                                struct rnet_sample **out,
                                struct rnet_error **error);

/**
 * Frees an owned sample. Null is allowed.
 *
 * @pre `sample` is null or an owned sample that was not freed.
 */
void rnet_sample_free(struct rnet_sample *sample);

/**
 * Serves a service: `handler` is called for each request. The caller frees the service with
 * rnet_service_free().
 *
 * `free_context` is called once with `context` after the last call, also if this function fails.
 *
 * Errors: RNET_BAD_NAME, RNET_BAD_VALUE, RNET_LIMIT_REACHED, RNET_OUT_OF_MEMORY, RNET_CLOSED.
 *
 * @pre `node` is a node, `name` a string, `options` null or initialised, `out` valid for a write, `error` null or
 * valid for a write. The handler and the context may be used by other threads.
 */
enum rnet_code rnet_service_new(const struct rnet_node *node,
                                const char *name,
                                const struct rnet_service_options *options,
                                rnet_request_function handler,
                                void *context,
                                rnet_free_function free_context,
                                struct rnet_service **out,
                                struct rnet_error **error);

/**
 * The name of the service, with its leading slash. Valid until it is freed; "" if `service` is null.
 *
 * @pre `service` is null or was not freed.
 */
const char *rnet_service_name(const struct rnet_service *service);

/**
 * The counters of a server.
 *
 * @pre `service` is a service, `out` initialised, `error` null or valid for a write.
 */
enum rnet_code rnet_service_get_stats(const struct rnet_service *service,
                                      struct rnet_service_stats *out,
                                      struct rnet_error **error);

/**
 * Closes a server: cancels its calls, and waits for running handlers, except within a callback or a handler. The
 * answer of a handler that does not ask for the cancellation is delivered; other callers get
 * RNET_SERVER_LOST. Null and a closed server are allowed.
 *
 * @pre `service` is null or was not freed.
 */
void rnet_service_close(struct rnet_service *service);

/**
 * Closes and frees a server. Null is allowed. No other thread may be about to use it.
 *
 * @pre `service` is null or was not freed.
 */
void rnet_service_free(struct rnet_service *service);

/**
 * Opens a client of a service, whose servers may start later. The caller frees it with rnet_client_free().
 *
 * Errors: RNET_BAD_NAME, RNET_BAD_VALUE, RNET_LIMIT_REACHED, RNET_OUT_OF_MEMORY, RNET_CLOSED.
 *
 * @pre `node` is a node, `name` a string, `options` null or initialised, `out` valid for a write, `error` null or
 * valid for a write.
 */
enum rnet_code rnet_client_new(const struct rnet_node *node,
                               const char *name,
                               const struct rnet_client_options *options,
                               struct rnet_client **out,
                               struct rnet_error **error);

/**
 * Calls a service, and waits for the reply. `*out` becomes an owned sample, which the caller frees.
 *
 * Errors: RNET_TIMEOUT; RNET_SERVER_LOST if the server ended before it answered; RNET_CALL_FAILED with the
 * error of its handler; RNET_REFUSED if the backlogs of all servers are full; RNET_FULL, RNET_CANCELLED,
 * RNET_CALL_LOST, RNET_INCOMPATIBLE_TYPE, RNET_BAD_VALUE, RNET_LIMIT_REACHED, RNET_CLOSED.
 *
 * @pre `client` is a client, `data` valid for reads of `len` bytes, `options` null or initialised, `out` valid
 * for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_client_call(const struct rnet_client *client,
                                const uint8_t *data,
                                size_t len,
                                const struct rnet_call_options *options,
                                struct rnet_sample **out,
                                struct rnet_error **error);

/**
 * Calls a service once, with a client that the node keeps for the next call of these types. `*out` becomes
 * an owned sample, which the caller frees.
 *
 * Errors: as for rnet_client_new() and rnet_client_call().
 *
 * @pre `node` is a node, `name` a string, `data` valid for reads of `len` bytes, `options` null or initialised,
 * `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_node_call(const struct rnet_node *node,
                              const char *name,
                              const uint8_t *data,
                              size_t len,
                              const struct rnet_client_options *options,
                              struct rnet_sample **out,
                              struct rnet_error **error);

/**
 * Starts a call, without waiting. The caller frees it with rnet_pending_free(), which cancels it.
 *
 * Errors: RNET_BAD_VALUE, RNET_CLOSED. Others are those of rnet_pending_next().
 *
 * @pre As for rnet_client_call().
 */
enum rnet_code rnet_client_start(const struct rnet_client *client,
                                 const uint8_t *data,
                                 size_t len,
                                 const struct rnet_call_options *options,
                                 struct rnet_pending **out,
                                 struct rnet_error **error);

/**
 * Waits for the next reply, for at most `timeout_ns`. `*out` becomes an owned sample, which the caller
 * frees; null after the last reply.
 *
 * Errors: RNET_TIMEOUT if no reply is there yet: the call continues, unless its own time limit is over; as
 * for rnet_client_call(), after which the call has ended.
 *
 * @pre `pending` is a call, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_pending_next(const struct rnet_pending *pending,
                                 int64_t timeout_ns,
                                 struct rnet_sample **out,
                                 struct rnet_error **error);

/**
 * Cancels the call: its server is notified, and waits for it fail with RNET_CANCELLED. Null is allowed.
 *
 * @pre `pending` is null or was not freed.
 */
void rnet_pending_cancel(const struct rnet_pending *pending);

/**
 * Cancels and frees a call. Null is allowed. No other thread may be about to use it.
 *
 * @pre `pending` is null or was not freed.
 */
void rnet_pending_free(struct rnet_pending *pending);

/**
 * The name of the service, with its leading slash. Valid until the client is freed; "" if `client` is null.
 *
 * @pre `client` is null or was not freed.
 */
const char *rnet_client_name(const struct rnet_client *client);

/**
 * The counters of a client.
 *
 * @pre `client` is a client, `out` initialised, `error` null or valid for a write.
 */
enum rnet_code rnet_client_get_stats(const struct rnet_client *client,
                                     struct rnet_client_stats *out,
                                     struct rnet_error **error);

/**
 * Closes a client: its open calls end with RNET_CLOSED, also those that other threads wait for. Null and a
 * closed client are allowed.
 *
 * @pre `client` is null or was not freed.
 */
void rnet_client_close(const struct rnet_client *client);

/**
 * Frees a client. Calls that it started continue; see rnet_client_close(). Null is allowed. No other thread
 * may be about to use it.
 *
 * @pre `client` is null or was not freed.
 */
void rnet_client_free(struct rnet_client *client);

/**
 * The state of the node's domain. The caller frees it with rnet_state_free(). Opened at the first call of a
 * node; later calls are cheap.
 *
 * Errors: RNET_OUT_OF_MEMORY, RNET_NO_PERMISSION, RNET_LAYOUT_VERSION.
 *
 * @pre `node` is a node, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_node_state(const struct rnet_node *node,
                               struct rnet_state **out,
                               struct rnet_error **error);

/**
 * Closes a state: its calls fail with RNET_CLOSED from then on, and waits of other threads end. Its watches,
 * transactions and local copies stay usable. Null and a closed state are allowed.
 *
 * @pre `state` is null or was not freed.
 */
void rnet_state_close(const struct rnet_state *state);

/**
 * Closes and frees a state. Null is allowed. No other thread may be about to use it.
 *
 * @pre `state` is null or was not freed.
 */
void rnet_state_free(struct rnet_state *state);

/**
 * The value of a key, which the caller frees with rnet_value_free(); null if the key is absent, which is not
 * an error.
 *
 * @pre `state` is a state, `key` a string, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_state_get(const struct rnet_state *state,
                              const char *key,
                              struct rnet_value **out,
                              struct rnet_error **error);

/**
 * The boolean, the integer or the float of a key, in the node's domain without an allocation; of kind RNET_VALUE_NONE
 * if the key is absent.
 *
 * Errors: RNET_STATE_TYPE if the key holds another type.
 *
 * @pre `state` is a state, `key` a string, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_state_read(const struct rnet_state *state,
                               const char *key,
                               struct rnet_value_data *out,
                               struct rnet_error **error);

/**
 * The value of a key with its metadata, which the caller frees with rnet_entry_free(); null if the key is
 * absent, which is not an error. `*age_ns` becomes the time since that was known to be current at its home, 0 in the
 * node's domain; `*is_stale` whether the home is away. Each may be null.
 *
 * Errors: RNET_HOME_AWAY if another host does not answer and the key was never read; those of that host. For a local
 * copy RNET_BAD_VALUE if the key is not under its prefix.
 *
 * @pre `state` is a state, `key` a string, `out` valid for a write, `age_ns`, `is_stale` and `error` null or valid for a
 * write.
 */
enum rnet_code rnet_state_entry(const struct rnet_state *state,
                                const char *key,
                                struct rnet_entry **out,
                                int64_t *age_ns,
                                bool *is_stale,
                                struct rnet_error **error);

/**
 * The entries under a prefix, sorted by key, at one moment; "" for all, and for a local copy. The caller frees the list.
 *
 * Errors: for another host RNET_HOME_AWAY, and RNET_LIMIT_REACHED for more than 65,536 keys or 64 MiB of values.
 *
 * @pre `state` is a state, `prefix` a string, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_state_list(const struct rnet_state *state,
                               const char *prefix,
                               struct rnet_entry_list **out,
                               struct rnet_error **error);

/**
 * The keys under a prefix, in order, as a list of strings; "" for all. The caller frees it with
 * rnet_value_free().
 *
 * @pre As for rnet_state_list().
 */
enum rnet_code rnet_state_keys(const struct rnet_state *state,
                               const char *prefix,
                               struct rnet_value **out,
                               struct rnet_error **error);

/**
 * Problems of the state on disk since the domain started, oldest first, as a list of strings. The caller
 * frees it with rnet_value_free().
 *
 * @pre `state` is a state, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_state_disk_reports(const struct rnet_state *state,
                                       struct rnet_value **out,
                                       struct rnet_error **error);

/**
 * Revision of the newest change of any key.
 *
 * @pre `state` is a state, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_state_revision(const struct rnet_state *state,
                                   uint64_t *out,
                                   struct rnet_error **error);

/**
 * Sets a key. `options` may be null. `*revision` becomes the revision of the change; it may be null.
 *
 * Errors: RNET_CONFLICT if a condition of the options does not hold; RNET_STATE_TYPE if the key holds
 * another type; RNET_BAD_VALUE, RNET_LIMIT_REACHED for a value that cannot be stored; RNET_OUT_OF_MEMORY;
 * for a durable key RNET_STORAGE. For another host, which has no last will and no `expires_boot_ns`, because it cannot
 * observe this node: RNET_HOME_AWAY, which leaves open whether the write arrived.
 *
 * @pre `state` is a state, `key` a string, `value` a value, `options` null or initialised, `revision` and `error`
 * null or valid for a write.
 */
enum rnet_code rnet_state_set(const struct rnet_state *state,
                              const char *key,
                              const struct rnet_value *value,
                              const struct rnet_put_options *options,
                              uint64_t *revision,
                              struct rnet_error **error);

/**
 * Sets a key to a value of this content, without options. Errors as rnet_state_set() and rnet_value_new().
 *
 * @pre `state` is a state, `key` a string, `data` valid as for rnet_value_new(), `error` null or valid for a write.
 */
enum rnet_code rnet_state_write(const struct rnet_state *state,
                                const char *key,
                                struct rnet_value_data data,
                                struct rnet_error **error);

/**
 * Deletes a key; with `if_revision` other than 0 only at that revision. `*deleted` becomes false if it was
 * absent; it may be null.
 *
 * Errors: RNET_CONFLICT if it is at another revision; RNET_BAD_VALUE for a parameter without a default; for
 * a durable key RNET_STORAGE; for another host as rnet_state_set().
 *
 * @pre `state` is a state, `key` a string, `deleted` and `error` null or valid for a write.
 */
enum rnet_code rnet_state_delete(const struct rnet_state *state,
                                 const char *key,
                                 uint64_t if_revision,
                                 bool *deleted,
                                 struct rnet_error **error);

/**
 * The content of an entry.
 *
 * @pre `entry` is an entry, `out` initialised, `error` null or valid for a write.
 */
enum rnet_code rnet_entry_read(const struct rnet_entry *entry,
                               struct rnet_entry_info *out,
                               struct rnet_error **error);

/**
 * Frees an entry of the caller. Null is allowed.
 *
 * @pre `entry` is null, or an entry that a function has returned and that was not freed; not one of a list or
 * change.
 */
void rnet_entry_free(struct rnet_entry *entry);

/** An entry, which belongs to the list; null if there is none at this index. */
const struct rnet_entry *rnet_entry_list_get(const struct rnet_entry_list *list, size_t index);

/** The revision of the state at which the list was made; 0 for the state of another host. */
uint64_t rnet_entry_list_revision(const struct rnet_entry_list *list);

/**
 * Frees a list with its entries. Null is allowed.
 *
 * @pre `list` is null or was not freed.
 */
void rnet_entry_list_free(struct rnet_entry_list *list);

/**
 * The content of a change.
 *
 * @pre `change` is a change, `out` initialised, `error` null or valid for a write.
 */
enum rnet_code rnet_change_read(const struct rnet_change *change,
                                struct rnet_change_info *out,
                                struct rnet_error **error);

/**
 * Frees a change of the caller; not that of a callback. Null is allowed.
 *
 * @pre `change` is null, or a change that a function has returned and that was not freed.
 */
void rnet_change_free(struct rnet_change *change);

/**
 * Adds to an integer; an absent key starts at 0. `*sum` may be null.
 *
 * Errors: RNET_STATE_TYPE if the key holds another type; RNET_BAD_VALUE if the sum does not fit into 64
 * bits; RNET_LIMIT_REACHED if other writers interfered each time.
 *
 * @pre `state` is a state, `key` a string, `sum` and `error` null or valid for a write.
 */
enum rnet_code rnet_state_add(const struct rnet_state *state,
                              const char *key,
                              int64_t amount,
                              int64_t *sum,
                              struct rnet_error **error);

/**
 * As rnet_state_add(), for a float.
 *
 * @pre As for rnet_state_add().
 */
enum rnet_code rnet_state_add_float(const struct rnet_state *state,
                                    const char *key,
                                    double amount,
                                    double *sum,
                                    struct rnet_error **error);

/**
 * Appends to a list, which rnet_state_get() returns, and keeps its last `max_len` items. `*len` becomes its
 * length; it may be null.
 *
 * Errors: as rnet_state_set(); RNET_LIMIT_REACHED also if other writers interfered each time.
 *
 * @pre `state` is a state, `key` a string, `value` a value, `len` and `error` null or valid for a write.
 */
enum rnet_code rnet_state_push(const struct rnet_state *state,
                               const char *key,
                               const struct rnet_value *value,
                               size_t max_len,
                               size_t *len,
                               struct rnet_error **error);

/**
 * Adds a member to a set, which rnet_state_get() returns. `*added` becomes false if it was already in the
 * set; it may be null. Errors as rnet_state_push().
 *
 * @pre `state` is a state, `key` a string, `value` a value, `added` and `error` null or valid for a write.
 */
enum rnet_code rnet_state_set_add(const struct rnet_state *state,
                                  const char *key,
                                  const struct rnet_value *value,
                                  bool *added,
                                  struct rnet_error **error);

/**
 * Removes a member from a set. `*removed` becomes false if it was not in the set; it may be null. Errors as
 * rnet_state_push().
 *
 * @pre As for rnet_state_set_add().
 */
enum rnet_code rnet_state_set_remove(const struct rnet_state *state,
                                     const char *key,
                                     const struct rnet_value *value,
                                     bool *removed,
                                     struct rnet_error **error);

/**
 * Whether a set has this member; false if the key is absent.
 *
 * Errors: RNET_STATE_TYPE if the key does not hold a set.
 *
 * @pre As for rnet_state_set_add(); `out` is valid for a write.
 */
enum rnet_code rnet_state_contains(const struct rnet_state *state,
                                   const char *key,
                                   const struct rnet_value *value,
                                   bool *out,
                                   struct rnet_error **error);

/**
 * The state of another host, the home of its keys, by the name that `rnet link status` shows. It has get, read, entry,
 * list, params, set, write, delete and mirror. Each request waits for at most `timeout_ns`; 0 is the default of 10 s. The
 * caller frees it with rnet_state_free().
 *
 * A read asks that host. While the host is away, the last value that was read is returned: see rnet_state_entry() for its
 * age. A write is sent once, and returns when it is in effect there; while the host is away it fails with
 * RNET_HOME_AWAY, and may have arrived.
 *
 * Errors: RNET_BAD_NAME, RNET_LIMIT_REACHED, RNET_OUT_OF_MEMORY, RNET_CLOSED.
 *
 * @pre `node` is a node, `host` a string, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_node_state_of(const struct rnet_node *node,
                                  const char *host,
                                  int64_t timeout_ns,
                                  struct rnet_state **out,
                                  struct rnet_error **error);

/**
 * A local copy of the keys under a prefix of another host: while it exists, reads of these keys do not use the
 * network. It has get, read, entry, list, age and recv. Returns when it has the current values. The caller frees it with
 * rnet_state_free().
 *
 * Errors: RNET_HOME_AWAY, RNET_TIMEOUT; RNET_LIMIT_REACHED for more than 64 copies, 65,536 keys or 64 MiB
 * of values; RNET_BAD_NAME.
 *
 * @pre `state` is the state of another host, `prefix` a string, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_state_mirror(const struct rnet_state *state,
                                 const char *prefix,
                                 struct rnet_state **out,
                                 struct rnet_error **error);

/**
 * Time since the keys of a local copy were known to be current, in ns: less than 1 s while the host is connected; and
 * whether the host is away. Each may be null.
 *
 * @pre `state` is a local copy, `age_ns`, `is_stale` and `error` null or valid for a write.
 */
enum rnet_code rnet_state_age(const struct rnet_state *state,
                              int64_t *age_ns,
                              bool *is_stale,
                              struct rnet_error **error);

/**
 * As rnet_watch_recv(), for a local copy: first the current values, then each change.
 *
 * Errors: RNET_TIMEOUT, RNET_CLOSED; RNET_LIMIT_REACHED if changes of more than 65,536 keys wait.
 *
 * @pre `state` is a local copy, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_state_recv(const struct rnet_state *state,
                               int64_t timeout_ns,
                               struct rnet_change **out,
                               struct rnet_error **error);

/**
 * Begins a transaction. The caller frees it with rnet_transaction_free().
 *
 * @pre `state` is a state, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_state_transaction(const struct rnet_state *state,
                                      struct rnet_transaction **out,
                                      struct rnet_error **error);

/**
 * The value of a key: the one that this transaction has set, otherwise the current one. The caller frees it
 * with rnet_value_free(). Null if the key is absent, which is not an error.
 *
 * Errors: RNET_CONFLICT if it was read here before, and another writer has changed it since;
 * RNET_LIMIT_REACHED for too many keys; RNET_BAD_NAME, RNET_CLOSED, RNET_WRONG_THREAD.
 *
 * @pre `transaction` is a transaction, `key` a string, `out` valid for a write, `error` null or valid for a
 * write.
 */
enum rnet_code rnet_transaction_get(struct rnet_transaction *transaction,
                                    const char *key,
                                    struct rnet_value **out,
                                    struct rnet_error **error);

/**
 * Sets a key at the commit. `options` may be null; it has no `if_revision` or `if_absent` here.
 *
 * Errors: RNET_LIMIT_REACHED for too many keys; RNET_BAD_NAME, RNET_CLOSED, RNET_WRONG_THREAD. The commit
 * reports a value that cannot be stored.
 *
 * @pre `transaction` is a transaction, `key` a string, `value` a value, `options` null or initialised, `error`
 * null or valid for a write.
 */
enum rnet_code rnet_transaction_set(struct rnet_transaction *transaction,
                                    const char *key,
                                    const struct rnet_value *value,
                                    const struct rnet_put_options *options,
                                    struct rnet_error **error);

/**
 * Deletes a key at the commit. Errors as rnet_transaction_set().
 *
 * @pre `transaction` is a transaction, `key` a string, `error` null or valid for a write.
 */
enum rnet_code rnet_transaction_delete(struct rnet_transaction *transaction,
                                       const char *key,
                                       struct rnet_error **error);

/**
 * Makes all changes in one step, and ends the transaction: its calls fail with RNET_CLOSED from then on. It
 * must still be freed. `*revision` becomes the revision of the changes; it may be null.
 *
 * Errors: RNET_CONFLICT if another writer has changed a key that was read here: nothing was changed, and the
 * program begins again; as rnet_state_set().
 *
 * @pre `transaction` is a transaction, `revision` and `error` null or valid for a write.
 */
enum rnet_code rnet_transaction_commit(struct rnet_transaction *transaction,
                                       uint64_t *revision,
                                       struct rnet_error **error);

/**
 * Frees a transaction. Without a commit it changes nothing. Null is allowed.
 *
 * @pre `transaction` is null or was not freed.
 */
void rnet_transaction_free(struct rnet_transaction *transaction);

/**
 * A value of any kind except RNET_VALUE_NONE and RNET_VALUE_UNREADABLE. Its content is copied; a set is sorted, without
 * duplicates. The caller frees it with rnet_value_free().
 *
 * Errors: RNET_INVALID_ARGUMENT for another kind, or text that is not UTF-8; RNET_BAD_VALUE for text that is not JSON,
 * and for a message without a type, or with bytes that cannot be of its type.
 *
 * @pre The fields of `data` that its kind uses are valid, `out` is valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_value_new(struct rnet_value_data data,
                              struct rnet_value **out,
                              struct rnet_error **error);

/**
 * A copy, owned by the caller. Null for null.
 *
 * @pre `value` is null or a value.
 */
struct rnet_value *rnet_value_copy(const struct rnet_value *value);

/**
 * Whether two values are equal. An integer and a float never are.
 *
 * @pre Each is null or a value.
 */
bool rnet_value_equal(const struct rnet_value *a, const struct rnet_value *b);

/**
 * The content of a value, whose pointers are valid as long as the value; of kind RNET_VALUE_NONE if it is null.
 *
 * @pre `value` is null or a value.
 */
struct rnet_value_data rnet_value_read(const struct rnet_value *value);

/**
 * The name of its type, as text that is not terminated by NUL: "bool", "int", "float", "str", "bytes",
 * "json", "list", "set"; of a message its full name. Valid as long as the value.
 *
 * @pre `value` is null or a value.
 */
struct rnet_bytes rnet_value_type_name(const struct rnet_value *value);

/**
 * An item of a list or set, which belongs to it; null if there is none at this index.
 *
 * @pre `value` is null or a value.
 */
const struct rnet_value *rnet_value_item(const struct rnet_value *value, size_t index);

/**
 * Checks that the value of a key is of a kind, an rnet_value_kind; a message must be one that readers of
 * `message_type` understand, by the rules of topics. `key` is for the text of the error.
 *
 * Errors: RNET_STATE_TYPE.
 *
 * @pre `value` is a value, `key` a string, `message_type` null or a type, `error` null or valid for a write.
 */
enum rnet_code rnet_value_check(const struct rnet_value *value,
                                const char *key,
                                int32_t kind,
                                const struct rnet_type *message_type,
                                struct rnet_error **error);

/**
 * Frees a value of the caller. Null is allowed.
 *
 * @pre `value` is null or an owned value that was not freed.
 */
void rnet_value_free(struct rnet_value *value);

/**
 * Watches the keys under a prefix; "" for all. The caller frees the watch with rnet_watch_free().
 *
 * Errors: RNET_LIMIT_REACHED, RNET_OUT_OF_MEMORY, RNET_BAD_NAME, RNET_CLOSED.
 *
 * @pre `state` is a state, `prefix` a string, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_state_watch(const struct rnet_state *state,
                                const char *prefix,
                                struct rnet_watch **out,
                                struct rnet_error **error);

/**
 * Waits for the next change, for at most `timeout_ns`: RNET_FOREVER waits without a limit, 0 does not wait.
 * The caller frees the change with rnet_change_free(); it is null if there is none and `timeout_ns` is 0,
 * which is not an error.
 *
 * Errors: RNET_TIMEOUT, RNET_CLOSED, RNET_WRONG_THREAD.
 *
 * @pre `watch` is a watch, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_watch_recv(struct rnet_watch *watch,
                               int64_t timeout_ns,
                               struct rnet_change **out,
                               struct rnet_error **error);

/**
 * A file descriptor that is readable when there may be a change, as rnet_subscriber_fd(): it stays readable until
 * rnet_watch_recv() with `timeout_ns` 0 has returned null. It is closed by rnet_watch_free(). If the watch or its node is
 * closed, it becomes readable, and rnet_watch_recv() fails with RNET_CLOSED.
 *
 * Errors: RNET_LIMIT_REACHED if the process has no free descriptor; RNET_CLOSED, RNET_WRONG_THREAD.
 *
 * @pre `watch` is a watch, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_watch_fd(struct rnet_watch *watch,
                             int *out,
                             struct rnet_error **error);

/**
 * Passes each change to `on_change`, and each error to `on_error` if that is not null, on a thread of the
 * node: that of the urgent lane if `urgent`, otherwise that of the bulk lane. It runs until the guard is
 * freed. Consumes the watch: the caller frees it as usual, and its other calls fail with RNET_CLOSED.
 *
 * `free_context` is called once with `context` after the last call, also if this function fails.
 *
 * @pre `watch` is a watch, `out` valid for a write, `error` null or valid for a write. The functions and the
 * context may be used by other threads.
 */
enum rnet_code rnet_watch_on(struct rnet_watch *watch,
                             bool urgent,
                             rnet_change_function on_change,
                             rnet_error_function on_error,
                             void *context,
                             rnet_free_function free_context,
                             struct rnet_guard **out,
                             struct rnet_error **error);

/**
 * Closes a watch: its calls fail with RNET_CLOSED from then on, and a wait of another thread ends. Null and
 * a closed watch are allowed.
 *
 * @pre `watch` is null or was not freed.
 */
void rnet_watch_close(struct rnet_watch *watch);

/**
 * Closes and frees a watch. Null is allowed. No other thread may be about to use it.
 *
 * @pre `watch` is null or was not freed.
 */
void rnet_watch_free(struct rnet_watch *watch);

/** A peer, valid until the list is freed; null beyond the end. */
const struct rnet_peer *rnet_peer_list_get(const struct rnet_peer_list *list, size_t at);

/**
 * Frees a list. Null is allowed.
 *
 * @pre `list` is null or was not freed.
 */
void rnet_peer_list_free(struct rnet_peer_list *list);

/** An error, which belongs to the list; null beyond the end. */
const struct rnet_error *rnet_error_list_get(const struct rnet_error_list *list, size_t at);

/**
 * Frees a list and its errors. Null is allowed.
 *
 * @pre `list` is null or was not freed.
 */
void rnet_error_list_free(struct rnet_error_list *list);

/** The counts of one publisher, valid until the list is freed; null beyond the end. */
const struct rnet_publisher_stats *rnet_stats_list_get(const struct rnet_stats_list *list,
                                                       size_t at);

/**
 * Frees a list. Null is allowed.
 *
 * @pre `list` is null or was not freed.
 */
void rnet_stats_list_free(struct rnet_stats_list *list);

/**
 * Received and lost messages by publisher, including former publishers. The caller frees the list with
 * rnet_stats_list_free(). Does not end a borrowed sample.
 *
 * Errors: RNET_CLOSED, RNET_WRONG_THREAD.
 *
 * @pre `subscriber` is a subscriber, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_subscriber_stats(struct rnet_subscriber *subscriber,
                                     struct rnet_stats_list **out,
                                     struct rnet_error **error);

/**
 * Its losses, its backlog and its publishers in numbers. Does not end a borrowed sample.
 *
 * Errors: RNET_CLOSED, RNET_WRONG_THREAD.
 *
 * @pre `subscriber` is a subscriber, `out` initialised, `error` null or valid for a write.
 */
enum rnet_code rnet_subscriber_get_counts(struct rnet_subscriber *subscriber,
                                          struct rnet_subscriber_counts *out,
                                          struct rnet_error **error);

/**
 * The publishers that are matched now. The caller frees the list with rnet_peer_list_free(). Does not end a borrowed
 * sample.
 *
 * Errors: RNET_CLOSED, RNET_WRONG_THREAD.
 *
 * @pre `subscriber` is a subscriber, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_subscriber_publishers(struct rnet_subscriber *subscriber,
                                          struct rnet_peer_list **out,
                                          struct rnet_error **error);

/**
 * As rnet_subscriber_stats(), for a subscription; its callback may call it, too. Former publishers are one entry.
 *
 * @pre `subscription` is a subscription, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_subscription_stats(const struct rnet_subscription *subscription,
                                       struct rnet_stats_list **out,
                                       struct rnet_error **error);

/**
 * As rnet_subscriber_get_counts(), for a subscription.
 *
 * @pre `subscription` is a subscription, `out` initialised, `error` null or valid for a write.
 */
enum rnet_code rnet_subscription_get_counts(const struct rnet_subscription *subscription,
                                            struct rnet_subscriber_counts *out,
                                            struct rnet_error **error);

/**
 * The id of a publisher, as in rnet_sample_publisher(). 0 if it is null, closed or used by another thread.
 *
 * @pre `publisher` is null or a publisher.
 */
uint64_t rnet_publisher_id(const struct rnet_publisher *publisher);

/**
 * Number of messages sent. 0 as for rnet_publisher_id().
 *
 * @pre `publisher` is null or a publisher.
 */
uint64_t rnet_publisher_sent(const struct rnet_publisher *publisher);

/**
 * Number of deadline periods so far without a message. 0 without a deadline, and as for rnet_publisher_id().
 *
 * @pre `publisher` is null or a publisher.
 */
uint64_t rnet_publisher_deadline_missed(const struct rnet_publisher *publisher);

/**
 * The subscribers that are served now. The caller frees the list with rnet_peer_list_free().
 *
 * Errors: RNET_CLOSED, RNET_WRONG_THREAD.
 *
 * @pre `publisher` is a publisher, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_publisher_subscribers(struct rnet_publisher *publisher,
                                          struct rnet_peer_list **out,
                                          struct rnet_error **error);

/**
 * The errors of subscribers that cannot be served: incompatible types or quality of service. The caller frees the
 * list with rnet_error_list_free().
 *
 * Errors: RNET_CLOSED, RNET_WRONG_THREAD.
 *
 * @pre `publisher` is a publisher, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_publisher_incompatible(struct rnet_publisher *publisher,
                                           struct rnet_error_list **out,
                                           struct rnet_error **error);

/**
 * Makes each subscriber count `count` messages as lost before the next message, for an rnet_loss_cause: for messages
 * that the publisher knows to be missing. Sends no message.
 *
 * Errors: RNET_INVALID_ARGUMENT for another cause; RNET_CLOSED, RNET_WRONG_THREAD, RNET_IO.
 *
 * @pre `publisher` is a publisher, `error` null or valid for a write.
 */
enum rnet_code rnet_publisher_publish_gap(struct rnet_publisher *publisher,
                                          int32_t cause,
                                          uint64_t count,
                                          struct rnet_error **error);

/**
 * The names of the other nodes of this host, as a list of strings. The caller frees it with rnet_value_free().
 *
 * Errors: RNET_CLOSED.
 *
 * @pre `node` is a node, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_node_peers(const struct rnet_node *node,
                               struct rnet_value **out,
                               struct rnet_error **error);

/**
 * Number of errors so far in the node's callbacks, timers and handlers, as reported with
 * rnet_report_callback_error(). 0 if `node` is null or closed.
 *
 * @pre `node` is null or a node.
 */
uint64_t rnet_node_callback_errors(const struct rnet_node *node);

/**
 * A file descriptor for an event loop: readable when a message or an error may be available.
 *
 * It is level-triggered: it stays readable until rnet_subscriber_recv() with a timeout of 0 gives no sample, so
 * receive until then. It may be readable without a message. Do not read from it, write to it or close it: it is
 * closed by rnet_subscriber_free(). If the subscriber or its node is closed, it becomes readable, and
 * rnet_subscriber_recv() fails with RNET_CLOSED. Each call gives the same descriptor. Ends a borrowed sample.
 *
 * A message takes one thread hop more than with rnet_subscriber_recv(); senders do not notice the descriptor.
 *
 * Errors: RNET_LIMIT_REACHED if the process has no free descriptor; RNET_CLOSED, RNET_WRONG_THREAD.
 *
 * @pre `subscriber` is a subscriber, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_subscriber_fd(struct rnet_subscriber *subscriber,
                                  int *out,
                                  struct rnet_error **error);

/**
 * Subscribes to a topic. The caller frees the subscriber with rnet_subscriber_free().
 *
 * Errors: RNET_BAD_NAME, RNET_BAD_QOS, RNET_LIMIT_REACHED, RNET_OUT_OF_MEMORY, RNET_CLOSED.
 *
 * @pre `node` is a node, `topic` a string, `options` null or initialised, `out` valid for a write, `error` null or valid
 * for a write.
 */
enum rnet_code rnet_subscriber_new(const struct rnet_node *node,
                                   const char *topic,
                                   const struct rnet_subscriber_options *options,
                                   struct rnet_subscriber **out,
                                   struct rnet_error **error);

/**
 * Waits for the next message, for at most `timeout_ns`: RNET_FOREVER waits without a limit, 0 does not wait.
 *
 * `*out` becomes a borrowed sample, valid until the next call with this subscriber; null if nothing has arrived and
 * `timeout_ns` is 0, which is not an error.
 *
 * Errors: RNET_TIMEOUT; once each, an event of one publisher while the others continue: RNET_PEER_LOST,
 * RNET_DETACHED, RNET_INCOMPATIBLE_TYPE, RNET_INCOMPATIBLE_QOS, RNET_CORRUPT, RNET_TOO_MANY_PINS; RNET_CLOSED,
 * RNET_WRONG_THREAD.
 *
 * @pre `subscriber` is a subscriber, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_subscriber_recv(struct rnet_subscriber *subscriber,
                                    int64_t timeout_ns,
                                    const struct rnet_sample **out,
                                    struct rnet_error **error);

/**
 * As rnet_subscriber_recv(), for the newest unread message of all publishers. Older ones are counted as skipped.
 *
 * @pre As for rnet_subscriber_recv().
 */
enum rnet_code rnet_subscriber_latest(struct rnet_subscriber *subscriber,
                                      int64_t timeout_ns,
                                      const struct rnet_sample **out,
                                      struct rnet_error **error);

/**
 * Waits until at least `count` publishers are matched: messages sent after that are received or counted as lost.
 *
 * Errors: RNET_TIMEOUT; RNET_INCOMPATIBLE_TYPE or RNET_INCOMPATIBLE_QOS if an incompatible publisher appears;
 * RNET_LIMIT_REACHED; RNET_CLOSED, RNET_WRONG_THREAD.
 *
 * @pre `subscriber` is a subscriber, `error` null or valid for a write.
 */
enum rnet_code rnet_subscriber_wait_for_publishers(struct rnet_subscriber *subscriber,
                                                   size_t count,
                                                   int64_t timeout_ns,
                                                   struct rnet_error **error);

/**
 * Number of publishers that serve the subscriber now.
 *
 * @pre `subscriber` is a subscriber, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_subscriber_publisher_count(struct rnet_subscriber *subscriber,
                                               size_t *out,
                                               struct rnet_error **error);

/**
 * Closes a subscriber: its calls fail with RNET_CLOSED from then on, and a wait of another thread ends. Null and a
 * closed subscriber are allowed. A sample that another thread has borrowed stays valid until that thread's next call.
 *
 * @pre `subscriber` is null or was not freed.
 */
void rnet_subscriber_close(struct rnet_subscriber *subscriber);

/**
 * Closes and frees a subscriber. Null is allowed. No other thread may be about to use it, or a borrowed sample of it.
 *
 * @pre `subscriber` is null or was not freed.
 */
void rnet_subscriber_free(struct rnet_subscriber *subscriber);

/**
 * Passes each message to `on_message`, and each error to `on_error` if that is not null, on the node's thread for the
 * lane of the topic, one at a time, until the subscription is closed or freed. Consumes the subscriber: the caller
 * frees it as usual, and its other calls fail with RNET_CLOSED.
 *
 * `free_context` is called once with `context` after the last call, also if this function fails. The caller frees
 * the subscription with rnet_subscription_free().
 *
 * @pre `subscriber` is a subscriber, `out` valid for a write, `error` null or valid for a write. The functions and the
 * context may be used by other threads.
 */
enum rnet_code rnet_subscriber_on(struct rnet_subscriber *subscriber,
                                  rnet_sample_function on_message,
                                  rnet_error_function on_error,
                                  void *context,
                                  rnet_free_function free_context,
                                  struct rnet_subscription **out,
                                  struct rnet_error **error);

/**
 * Ends the callback and frees the subscription. When it returns, the callback does not run and is not called again,
 * except within a callback. Null is allowed.
 *
 * @pre `subscription` is null or was not freed.
 */
void rnet_subscription_free(struct rnet_subscription *subscription);

/**
 * Waits until the callback has at least `count` publishers.
 *
 * Errors: as for rnet_subscriber_wait_for_publishers(); RNET_BAD_VALUE in a callback of the same lane.
 *
 * @pre `subscription` is a subscription, `error` null or valid for a write.
 */
enum rnet_code rnet_subscription_wait_for_publishers(const struct rnet_subscription *subscription,
                                                     size_t count,
                                                     int64_t timeout_ns,
                                                     struct rnet_error **error);

/**
 * Starts a timer: calls `callback` every `period_ns` of the node's time, on the node's thread for the lane, in sequence
 * with the callbacks of that lane. The first tick is due after one period. A tick that has not run when the next one
 * is due is skipped and counted. The caller frees the timer with rnet_timer_free().
 *
 * `free_context` is called once with `context` after the last call, also if this function fails.
 *
 * Errors: RNET_BAD_VALUE for a period of 0; RNET_CLOSED.
 *
 * @pre `node` is a node, `options` null or initialised, `out` valid for a write, `error` null or valid for a write. The
 * functions and the context may be used by other threads.
 */
enum rnet_code rnet_timer_new(const struct rnet_node *node,
                              int64_t period_ns,
                              const struct rnet_timer_options *options,
                              rnet_tick_function callback,
                              void *context,
                              rnet_free_function free_context,
                              struct rnet_timer **out,
                              struct rnet_error **error);

/**
 * Number of ticks for which the callback was called. 0 if `timer` is null or its node is closed.
 *
 * @pre `timer` is null or a timer.
 */
uint64_t rnet_timer_ticks(const struct rnet_timer *timer);

/**
 * Number of ticks skipped because the next one was due before the thread of the lane ran the timer. 0 if `timer` is
 * null or its node is closed.
 *
 * @pre `timer` is null or a timer.
 */
uint64_t rnet_timer_missed(const struct rnet_timer *timer);

/**
 * Ends and frees a timer. When it returns, the callback does not run and is not called again, except within a
 * callback. Null is allowed.
 *
 * @pre `timer` is null or was not freed.
 */
void rnet_timer_free(struct rnet_timer *timer);

/**
 * Creates a rate of `hz` ticks per second of the node's time, from now. Without a node, its time is CLOCK_MONOTONIC.
 * The caller frees it with rnet_rate_free().
 *
 * Errors: RNET_BAD_VALUE unless `hz` is above 0 and at most 1e9; RNET_CLOSED.
 *
 * @pre `node` is null or a node, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_rate_new(const struct rnet_node *node,
                             double hz,
                             struct rnet_rate **out,
                             struct rnet_error **error);

/**
 * Sleeps until the next tick is due, for at most `timeout_ns` of CLOCK_MONOTONIC: RNET_FOREVER has no limit. A sleep
 * that starts after its tick was due returns at once, and counts as an overrun; further ticks that have passed are
 * skipped. With a `timeout_ns` of 0 it does not wait: if no tick is due, the number of `*tick` becomes 0, which is not
 * an error.
 *
 * Errors: RNET_TIMEOUT; RNET_CLOSED once the node is closed; RNET_WRONG_THREAD.
 *
 * @pre `rate` is a rate, `tick` null or initialised, `error` null or valid for a write.
 */
enum rnet_code rnet_rate_sleep(struct rnet_rate *rate,
                               int64_t timeout_ns,
                               struct rnet_tick *tick,
                               struct rnet_error **error);

/**
 * Number of sleeps that started after their tick was due: the loop took longer than its period. 0 if `rate` is null,
 * closed or used by another thread.
 *
 * @pre `rate` is null or a rate.
 */
uint64_t rnet_rate_overruns(const struct rnet_rate *rate);

/**
 * Number of ticks skipped because the next one was due before the loop slept. 0 as for rnet_rate_overruns().
 *
 * @pre `rate` is null or a rate.
 */
uint64_t rnet_rate_missed(const struct rnet_rate *rate);

/**
 * Frees a rate. Null is allowed. No other thread may be about to use it.
 *
 * @pre `rate` is null or was not freed.
 */
void rnet_rate_free(struct rnet_rate *rate);

/**
 * Whether the node's time is simulated: see rnet_node_now(). False if `node` is null or closed.
 *
 * @pre `node` is null or a node.
 */
bool rnet_node_is_sim_time(const struct rnet_node *node);

/**
 * The offset of the wall clock: add `*offset_ns` to rnet_now_ns() for ns since 1970 UTC. `*uncertainty_ns` is its
 * uncertainty in both directions. It changes when the wall clock is set.
 *
 * @pre Each is null or valid for a write.
 */
void rnet_wall_offset(int64_t *offset_ns,
                      uint64_t *uncertainty_ns);

/**
 * The time in ns of CLOCK_BOOTTIME, which expires keys of the state: it advances while the machine is suspended.
 */
uint64_t rnet_boot_ns(void);

/**
 * A number for this boot of the machine, the same in all its containers; 0 if the system does not provide one.
 */
uint64_t rnet_boot_id(void);

/**
 * The type of a plain struct, sent as it is in memory. Publisher and subscriber compare its fields by name.
 * The caller frees it with rnet_type_free().
 *
 * `size` and `align` are sizeof() and alignof() of the struct; at most 8 byte alignment. Bytes outside of all
 * fields are padding.
 *
 * Errors: RNET_BAD_VALUE for a field outside of the struct, or two that overlap.
 *
 * @pre `name` is a string, `fields` refers to `field_count` fields, `out` is valid for a write, `error` is null or valid
 * for a write.
 */
enum rnet_code rnet_type_plain(const char *name,
                               size_t size,
                               size_t align,
                               const struct rnet_field *fields,
                               size_t field_count,
                               struct rnet_type **out,
                               struct rnet_error **error);

/**
 * The protobuf type `name` of a serialized google.protobuf.FileDescriptorSet with all imports. The caller frees it
 * with rnet_type_free().
 *
 * Errors: RNET_BAD_VALUE if the set is damaged or does not contain the type.
 *
 * @pre `descriptor_set` is a valid view, `name` a string, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_type_protobuf(struct rnet_bytes descriptor_set,
                                  const char *name,
                                  struct rnet_type **out,
                                  struct rnet_error **error);

/**
 * A built-in message by its full name: "foxglove.LaserScan", "rnet.msgs.Twist"; "rnet.msgs.Image", "rnet.msgs.PointCloud"
 * and "rnet.msgs.Tensor" for plain headers that data follows, see rnet_message_split(). The caller frees it with
 * rnet_type_free().
 *
 * Errors: RNET_BAD_VALUE for an unknown name.
 *
 * @pre `name` is a string, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_type_builtin(const char *name,
                                 struct rnet_type **out,
                                 struct rnet_error **error);

/**
 * Copies the header of a message that its data follows (rnet.msgs.Image, PointCloud, Tensor) to `header`, a struct with
 * the fields of docs/design/plain-messages.md, checks it, and gives its data, a view of `message`. The data is as long
 * as the header says, so that no element is outside of it. Fields that the message does not have are zero.
 *
 * Errors: RNET_BAD_VALUE names the invalid field; RNET_INVALID_ARGUMENT if the type has no data.
 *
 * @pre `ty` is a type, `message` a valid view, `header` valid for writes of `header_len` bytes, `data` valid for a write,
 * `error` null or valid for a write.
 */
enum rnet_code rnet_message_split(const struct rnet_type *ty,
                                  struct rnet_bytes message,
                                  void *header,
                                  size_t header_len,
                                  struct rnet_bytes *data,
                                  struct rnet_error **error);

/**
 * The name of a type; "" for raw bytes and for null. Valid until the type is freed.
 *
 * @pre `ty` is null or a type that was not freed.
 */
const char *rnet_type_name(const struct rnet_type *ty);

/**
 * Frees a type. Null is allowed.
 *
 * @pre `ty` is null or a type that was not freed.
 */
void rnet_type_free(struct rnet_type *ty);

/**
 * Creates a wait set for objects of `node`. The caller frees it with rnet_wait_set_free().
 *
 * Errors: RNET_CLOSED.
 *
 * @pre `node` is a node, `out` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_wait_set_new(const struct rnet_node *node,
                                 struct rnet_wait_set **out,
                                 struct rnet_error **error);

/**
 * Adds a subscriber of the same node, until it is detached or freed; also during a wait. Receive from it as usual,
 * with its own functions. While a thread waits with the set, other calls with the subscriber fail with
 * RNET_WRONG_THREAD.
 *
 * Errors: RNET_BAD_VALUE if it is already attached.
 *
 * @pre `set` is a wait set, `subscriber` a subscriber, `error` null or valid for a write.
 */
enum rnet_code rnet_wait_set_attach_subscriber(const struct rnet_wait_set *set,
                                               struct rnet_subscriber *subscriber,
                                               struct rnet_error **error);

/**
 * As rnet_wait_set_attach_subscriber(), for a watch of the state: receive its changes with rnet_watch_recv().
 *
 * @pre `set` is a wait set, `watch` a watch, `error` null or valid for a write.
 */
enum rnet_code rnet_wait_set_attach_watch(const struct rnet_wait_set *set,
                                          struct rnet_watch *watch,
                                          struct rnet_error **error);

/**
 * As rnet_wait_set_attach_subscriber(), for a rate: take its ticks with rnet_rate_sleep() and a timeout of 0.
 *
 * @pre `set` is a wait set, `rate` a rate, `error` null or valid for a write.
 */
enum rnet_code rnet_wait_set_attach_rate(const struct rnet_wait_set *set,
                                         struct rnet_rate *rate,
                                         struct rnet_error **error);

/**
 * Removes an object; also during a wait. The object itself is unchanged.
 *
 * Errors: RNET_BAD_VALUE if it is not attached.
 *
 * @pre `set` is a wait set, `error` null or valid for a write. `object` is only compared.
 */
enum rnet_code rnet_wait_set_detach(const struct rnet_wait_set *set,
                                    const void *object,
                                    struct rnet_error **error);

/**
 * Waits until an attached object may have a message, a change, a tick or an error, for at most `timeout_ns`:
 * RNET_FOREVER waits without a limit, 0 does not wait. `*ready_count` becomes the number of such objects, which
 * rnet_wait_set_ready() gives; 0 when the time is over, which is not an error.
 *
 * An object that was not read is ready again at the next wait, and one may be ready without having anything. A closed
 * object is ready until it is detached or freed. Ends the borrowed samples of attached subscribers.
 *
 * Errors: RNET_INTERRUPTED after rnet_wait_set_interrupt(); RNET_BAD_VALUE if an attached object belongs to another
 * node or has a file descriptor; RNET_CLOSED; RNET_WRONG_THREAD if another thread uses the set or an attached object.
 *
 * @pre `set` is a wait set, `ready_count` valid for a write, `error` null or valid for a write.
 */
enum rnet_code rnet_wait_set_wait(const struct rnet_wait_set *set,
                                  int64_t timeout_ns,
                                  size_t *ready_count,
                                  struct rnet_error **error);

/**
 * The ready objects of the last wait, in the order of attachment: the pointers that were attached. Null from the
 * number that rnet_wait_set_wait() has given on, and if another thread waits.
 *
 * @pre `set` is null or a wait set.
 */
const void *rnet_wait_set_ready(const struct rnet_wait_set *set,
                                size_t at);

/**
 * Ends the wait in progress, or the next one, with RNET_INTERRUPTED. A wait that becomes ready at the same moment
 * returns normally; then the next wait that is not ready is interrupted. Any thread may call it.
 *
 * @pre `set` is null or a wait set.
 */
void rnet_wait_set_interrupt(const struct rnet_wait_set *set);

/**
 * Frees a wait set; the attached objects stay open. Null is allowed. No other thread may be about to use it.
 *
 * @pre `set` is null or was not freed.
 */
void rnet_wait_set_free(struct rnet_wait_set *set);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#ifdef __cplusplus
/** What RNET_..._INIT is in C++: a struct of options or results with its size and defaults. */
extern "C++" template <class T>
constexpr T rnet_init() noexcept {
  T made{};
  made.struct_size = sizeof(T);
  return made;
}
#define RNET_INIT(type) rnet_init<type>()
#else
#define RNET_INIT(type) {.struct_size = sizeof(type)}
#endif

/* Initialisers: rnet_node_options options = RNET_NODE_OPTIONS_INIT; */
#define RNET_ACTION_OPTIONS_INIT RNET_INIT(rnet_action_options)
#define RNET_CALL_OPTIONS_INIT RNET_INIT(rnet_call_options)
#define RNET_CLIENT_STATS_INIT RNET_INIT(rnet_client_stats)
#define RNET_SUBSCRIBER_OPTIONS_INIT RNET_INIT(rnet_subscriber_options)
#define RNET_COMMAND_OPTIONS_INIT RNET_INIT(rnet_command_options)
#define RNET_COMMAND_STATS_INIT RNET_INIT(rnet_command_stats)
#define RNET_DRIVER_OPTIONS_INIT RNET_INIT(rnet_driver_options)
#define RNET_EVENT_CALLBACKS_INIT RNET_INIT(rnet_event_callbacks)
#define RNET_NODE_OPTIONS_INIT RNET_INIT(rnet_node_options)
#define RNET_PARAM_OPTIONS_INIT RNET_INIT(rnet_param_options)
#define RNET_PUBLISHER_OPTIONS_INIT RNET_INIT(rnet_publisher_options)
#define RNET_META_INIT RNET_INIT(rnet_meta)
#define RNET_PUSHER_OPTIONS_INIT RNET_INIT(rnet_pusher_options)
#define RNET_PUSH_STATS_INIT RNET_INIT(rnet_push_stats)
#define RNET_PULLER_OPTIONS_INIT RNET_INIT(rnet_puller_options)
#define RNET_SERVICE_STATS_INIT RNET_INIT(rnet_service_stats)
#define RNET_RECORDER_OPTIONS_INIT RNET_INIT(rnet_recorder_options)
#define RNET_RECORDING_SELECT_INIT RNET_INIT(rnet_recording_select)
#define RNET_SERVICE_OPTIONS_INIT RNET_INIT(rnet_service_options)
#define RNET_CLIENT_OPTIONS_INIT RNET_INIT(rnet_client_options)
#define RNET_PUT_OPTIONS_INIT RNET_INIT(rnet_put_options)
#define RNET_ENTRY_INFO_INIT RNET_INIT(rnet_entry_info)
#define RNET_CHANGE_INFO_INIT RNET_INIT(rnet_change_info)
#define RNET_SUBSCRIBER_COUNTS_INIT RNET_INIT(rnet_subscriber_counts)
#define RNET_TIMER_OPTIONS_INIT RNET_INIT(rnet_timer_options)
#define RNET_TICK_INIT RNET_INIT(rnet_tick)

#endif  /* RNET_H */
