//! A channel: the log of one publisher, and its readers.
//!
//! | module | contents |
//! |---|---|
//! | [`publisher`], [`pool`], [`reader_table`], `handoff` | the writer's side: log, chunks, readers |
//! | [`subscription`], [`reader`], [`received`], `reader_stats` | the reader's side: file, cursor, messages, counters |
//! | [`observe`] | reading without taking part |
//! | [`extension`] | the extension words of a record |
//! | [`word_file`] | the words that a writer leaves for its successor |

pub mod extension;
mod handoff;
pub mod observe;
pub mod pool;
pub mod publisher;
pub mod reader;
mod reader_stats;
pub mod reader_table;
pub mod received;
pub mod subscription;
pub mod word_file;
