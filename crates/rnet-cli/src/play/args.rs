//! The arguments of `rnet play`.

use std::path::PathBuf;
use std::str::FromStr;

use crate::bag::args::{SelectArgs, remap, topic_pattern};
use crate::shared_args::NodeArg;
use clap::Args;
use rnet::{Durability, NamePattern, Reliability};
use rnet_record::play::QosOverride;

#[derive(Debug, Args)]
pub struct PlayArgs {
    /// An MCAP file
    pub file: PathBuf,
    #[command(flatten)]
    pub select: SelectArgs,
    /// Speed factor; max: as fast as reliable subscribers accept messages
    #[arg(short, long, value_name = "X", default_value = "1")]
    pub rate: RateArg,
    /// Loop: restart at the end of the recording
    #[arg(short, long)]
    pub r#loop: bool,
    /// Publish the recording's time on /clock, for nodes that use simulated time
    #[arg(long)]
    pub clock: bool,
    /// With --clock: messages per second of recording time
    #[arg(long, value_name = "HZ", default_value_t = 100.0, requires = "clock", value_parser = parse_hertz)]
    pub clock_rate: f64,
    /// Rename a topic; repeatable
    #[arg(short = 'm', long, value_name = "A:=B", value_parser = remap)]
    pub remap: Vec<(String, String)>,
    /// Override the recorded quality of service for topics that match this name or pattern: reliable, best_effort,
    /// volatile, transient_local or transient_local:DEPTH; repeatable
    #[arg(long, value_name = "PATTERN=QOS,…")]
    pub qos: Vec<QosArg>,
    /// Also publish on topics that already have a publisher
    #[arg(long)]
    pub force: bool,
    /// Start paused
    #[arg(long)]
    pub paused: bool,
    /// Do not read keys from the terminal
    #[arg(long)]
    pub no_keys: bool,
    #[command(flatten)]
    pub own_node: NodeArg,
}

/// Topics, and the QoS that they are played with.
#[derive(Clone, Debug)]
pub struct QosArg {
    pub topics: NamePattern,
    pub qos: QosOverride,
}

impl FromStr for QosArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (topics, words) = text.split_once('=').ok_or("write /map=reliable,transient_local")?;
        let topics = topic_pattern(topics)?;
        let mut qos = QosOverride::default();
        for word in words.split(',') {
            let (name, depth) = word.split_once(':').unwrap_or((word, "1"));
            match name {
                "reliable" => qos.reliability = Some(Reliability::Reliable),
                "best_effort" => qos.reliability = Some(Reliability::BestEffort),
                "volatile" => qos.durability = Some(Durability::Volatile),
                "transient_local" => {
                    let wrong = |_| format!("{depth:?} is not a depth");
                    let depth: u32 = depth.parse().map_err(wrong)?;
                    qos.durability = Some(Durability::TransientLocal { depth });
                }
                _ => {
                    let known = "reliable, best_effort, volatile, transient_local[:DEPTH]";
                    return Err(format!("unknown quality of service {word:?}; use {known}"));
                }
            }
        }
        Ok(Self { topics, qos })
    }
}

/// The playback rate; `None` for as fast as possible.
#[derive(Clone, Copy, Debug)]
pub struct RateArg(pub Option<f64>);

impl FromStr for RateArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "max" {
            return Ok(Self(None));
        }
        let rate: f64 = text.parse().map_err(|_| "must be a number or max".to_owned())?;
        match (0.01..=100.0).contains(&rate) {
            true => Ok(Self(Some(rate))),
            false => Err("must be from 0.01 to 100, or max for as fast as possible".to_owned()),
        }
    }
}

pub fn parse_hertz(text: &str) -> Result<f64, String> {
    let hz: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    match (0.1..=10_000.0).contains(&hz) {
        true => Ok(hz),
        false => Err("must be from 0.1 to 10000".to_owned()),
    }
}
