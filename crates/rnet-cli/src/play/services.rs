//! Services of the player's node that control it: `pause`, `resume`, `step`, `seek`.
//!
//! A handler passes the command to the player, which polls about 50 times a second. The handler replies at
//! the next poll: the command has then been executed.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use rnet::{HandlerError, Node, Service};
use rnet_record::play::{PlaybackCommand, Position};

use crate::failure::Outcome;

/// Calls that wait for the player.
const MAX_PENDING_CALLS: usize = 16;

/// The payload of a call: only `seek` reads it.
#[derive(Clone, Copy, Debug, rnet::Plain)]
#[repr(C)]
struct PlayerRequest {
    /// Seconds from the start of the recording.
    seconds: f64,
}

/// The position of the player.
#[derive(Clone, Copy, Debug, rnet::Plain)]
#[repr(C)]
struct PlayerPosition {
    /// Seconds from the start of the recording.
    seconds: f64,
    /// Playback rate; 1 is the original speed.
    rate: f64,
    /// 1 if it is paused.
    paused: u64,
}

#[derive(Clone, Copy)]
enum PlayerCommand {
    Pause,
    Resume,
    Step,
    Seek(f64),
}

struct PlayerCall {
    command: PlayerCommand,
    done: SyncSender<PlayerPosition>,
}

/// The services, and their pending calls.
pub struct Services {
    calls: Receiver<PlayerCall>,
    /// These are done by the next poll.
    in_progress: VecDeque<SyncSender<PlayerPosition>>,
    start_ns: u64,
    _services: Vec<Service>,
}

impl Services {
    pub fn open(node: &Node, start_ns: u64) -> Outcome<Services> {
        let (sender, calls) = sync_channel(MAX_PENDING_CALLS);
        let serve = |name: &str, command: fn(f64) -> PlayerCommand| {
            let sender = sender.clone();
            let service = format!("{}/{name}", node.name());
            let service = node.service::<PlayerRequest, PlayerPosition>(&service);
            service.serve(move |request| call_player(&sender, command(request.seconds)))
        };
        let services = vec![
            serve("pause", |_| PlayerCommand::Pause)?,
            serve("resume", |_| PlayerCommand::Resume)?,
            serve("step", |_| PlayerCommand::Step)?,
            serve("seek", PlayerCommand::Seek)?,
        ];
        Ok(Services { calls, in_progress: VecDeque::new(), start_ns, _services: services })
    }

    /// The next command for the player. Replies to the calls of the previous poll.
    pub fn control(&mut self, position: &Position) -> Option<PlaybackCommand> {
        let at_ns = position.now_ns as i64 - self.start_ns as i64;
        let now = PlayerPosition {
            seconds: at_ns as f64 / 1e9,
            rate: position.rate.unwrap_or(f64::INFINITY),
            paused: position.paused.into(),
        };
        // A caller that has gone gets no reply.
        for done in self.in_progress.drain(..) {
            let _ = done.try_send(now);
        }
        let call = self.calls.try_recv().ok()?;
        self.in_progress.push_back(call.done);
        match call.command {
            PlayerCommand::Pause => (!position.paused).then_some(PlaybackCommand::TogglePause),
            PlayerCommand::Resume => position.paused.then_some(PlaybackCommand::TogglePause),
            PlayerCommand::Step => Some(PlaybackCommand::Step),
            // If it is out of range, the player goes as far as it can.
            PlayerCommand::Seek(seconds) => {
                Some(PlaybackCommand::Seek(((seconds * 1e9).round() as i64).saturating_sub(at_ns)))
            }
        }
    }
}

fn call_player(
    calls: &SyncSender<PlayerCall>,
    command: PlayerCommand,
) -> Result<PlayerPosition, HandlerError> {
    let over = || HandlerError::new("Over", "playback has finished");
    if let PlayerCommand::Seek(seconds) = command
        && !seconds.is_finite()
    {
        return Err(HandlerError::new("BadValue", "seconds is not a number"));
    }
    let (done, is_done) = sync_channel(1);
    match calls.try_send(PlayerCall { command, done }) {
        Ok(()) => is_done.recv().map_err(|_| over()),
        Err(TrySendError::Full(_)) => Err(HandlerError::new(
            "Full",
            format!("{MAX_PENDING_CALLS} calls are already waiting for the player"),
        )),
        Err(TrySendError::Disconnected(_)) => Err(over()),
    }
}
