//! Typed messages of an actor: structs, and built-in messages; and its steps on them.

use rnet::msgs::{LaserScan, Timestamp, Twist, Vector3};
use rnet::{HandlerError, Message, Node, Plain, Publisher, Result, Service, Subscriber};
use serde::{Deserialize, Serialize};

use crate::common::LONG;

/// A type of messages. Each language has its own definition of the struct.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum MessageForm {
    /// The struct `conformance.Leg`.
    Leg,
    /// The same with a field more at its end.
    LegGrown,
    /// The same with another type of its field `turns`.
    LegRetyped,
    Twist,
    LaserScan,
}

/// A step of an actor with messages of one type. Messages are numbered, and the number defines the content.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum TypedStep {
    Publish {
        topic: String,
        form: MessageForm,
    },
    Subscribe {
        topic: String,
        form: MessageForm,
    },
    WaitSubscribers,
    WaitPublishers,
    Send {
        number: u8,
    },
    /// The content of the next message in words.
    Receive,
    /// Opens a service that replies with the request.
    Echo {
        name: String,
        form: MessageForm,
    },
    /// Calls a service: the content of the reply in words.
    Call {
        name: String,
        form: MessageForm,
        number: u8,
    },
}

#[derive(Clone, Copy, Plain)]
#[plain(name = "conformance.Vector")]
#[repr(C)]
struct Vector {
    x: f32,
    y: f32,
}

#[derive(Clone, Copy, Plain)]
#[plain(name = "conformance.Leg")]
#[repr(C)]
struct Leg {
    force: [f64; 3],
    time_ns: u64,
    at: [Vector; 2],
    turns: i32,
    side: u32,
}

#[derive(Clone, Copy, Plain)]
#[plain(name = "conformance.Leg")]
#[repr(C)]
struct LegGrown {
    force: [f64; 3],
    time_ns: u64,
    at: [Vector; 2],
    turns: i32,
    side: u32,
    current: f64,
}

#[derive(Clone, Copy, Plain)]
#[plain(name = "conformance.Leg")]
#[repr(C)]
struct LegRetyped {
    force: [f64; 3],
    time_ns: u64,
    at: [Vector; 2],
    turns: u32,
    side: u32,
}

/// A message whose content a number defines.
trait Numbered: Message + Clone {
    fn of(number: u8) -> Self;
    /// Its content, with integers only: languages print other numbers differently.
    fn words(&self) -> String;
}

macro_rules! numbered_leg {
    ($leg:ident, $turns:ty $(, $current:ident)?) => {
        impl Numbered for $leg {
            fn of(number: u8) -> Self {
                let n = f32::from(number);
                $leg {
                    force: [1.0, -2.0, 3.0].map(|factor| factor * f64::from(number)),
                    time_ns: (1 << 60) + u64::from(number),
                    at: [Vector { x: n, y: n + 1.0 }, Vector { x: n + 2.0, y: n + 3.0 }],
                    turns: 1000 * <$turns>::from(number),
                    side: u32::MAX - u32::from(number),
                    $($current: 10.0 * f64::from(number),)?
                }
            }

            fn words(&self) -> String {
                let ([f, g, h], [v, w]) = (self.force, self.at);
                let more: &[String] = &[$(self.$current.to_string())?];
                let more = more.join(" ");
                let words = format!(
                    "{f} {g} {h} {} {} {} {} {} {} {} {more}",
                    self.time_ns, v.x, v.y, w.x, w.y, self.turns, self.side
                );
                words.trim_end().to_owned()
            }
        }
    };
}

numbered_leg!(Leg, i32);
numbered_leg!(LegGrown, i32, current);
numbered_leg!(LegRetyped, u32);

impl Numbered for Twist {
    /// Without a turn if the number is even.
    fn of(number: u8) -> Self {
        let n = f64::from(number);
        let turn = Vector3 { x: 0.0, y: 0.0, z: n };
        Twist {
            linear: Some(Vector3 { x: n, y: -n, z: 0.0 }),
            angular: (number % 2 == 1).then_some(turn),
        }
    }

    fn words(&self) -> String {
        let words = |vector: &Option<Vector3>| match vector {
            Some(Vector3 { x, y, z }) => format!("{x} {y} {z}"),
            None => "none".to_owned(),
        };
        format!("{} {}", words(&self.linear), words(&self.angular))
    }
}

impl Numbered for LaserScan {
    /// Longer than the messages that the log contains.
    fn of(number: u8) -> Self {
        LaserScan {
            timestamp: Some(Timestamp { seconds: number.into(), nanos: 7 }),
            frame_id: format!("laser {number}"),
            ranges: (0..1080).map(|at| f64::from(number) + f64::from(at)).collect(),
            ..Default::default()
        }
    }

    fn words(&self) -> String {
        let Timestamp { seconds, nanos } = self.timestamp.expect("each has a timestamp");
        let sum: f64 = self.ranges.iter().sum();
        format!("{} {seconds} {nanos} {} {sum}", self.frame_id, self.ranges.len())
    }
}

/// The endpoints of one type.
trait Endpoint {
    fn wait(&mut self) -> Result<()>;
    fn send(&mut self, _number: u8) -> Result<()> {
        panic!("not a publisher")
    }
    fn receive(&mut self) -> Result<String> {
        panic!("not a subscriber")
    }
}

impl<T: Numbered> Endpoint for Publisher<T> {
    fn wait(&mut self) -> Result<()> {
        self.wait_for_subscribers_timeout(1, LONG)
    }
    fn send(&mut self, number: u8) -> Result<()> {
        Publisher::send(self, &T::of(number))
    }
}

impl<T: Numbered> Endpoint for Subscriber<T> {
    fn wait(&mut self) -> Result<()> {
        self.wait_for_publishers_timeout(1, LONG)
    }
    fn receive(&mut self) -> Result<String> {
        Ok(self.recv_timeout(LONG)?.words())
    }
}

/// The endpoints of an actor with types.
#[derive(Default)]
pub struct Typed {
    publisher: Option<Box<dyn Endpoint + Send>>,
    subscriber: Option<Box<dyn Endpoint + Send>>,
    service: Option<Service>,
}

/// Calls a function with the type of a form.
macro_rules! with_form {
    ($form:expr, $function:ident($($argument:expr),*)) => {
        match $form {
            MessageForm::Leg => $function::<Leg>($($argument),*),
            MessageForm::LegGrown => $function::<LegGrown>($($argument),*),
            MessageForm::LegRetyped => $function::<LegRetyped>($($argument),*),
            MessageForm::Twist => $function::<Twist>($($argument),*),
            MessageForm::LaserScan => $function::<LaserScan>($($argument),*),
        }
    };
}

fn publish<T: Numbered>(node: &Node, topic: &str) -> Result<Box<dyn Endpoint + Send>> {
    Ok(Box::new(node.publisher::<T>(topic).open()?))
}

fn subscribe<T: Numbered>(node: &Node, topic: &str) -> Result<Box<dyn Endpoint + Send>> {
    Ok(Box::new(node.subscriber::<T>(topic).open()?))
}

fn echo<T: Numbered>(node: &Node, name: &str) -> Result<Service> {
    node.service::<T, T>(name).serve(|request| Ok::<_, HandlerError>(request.clone()))
}

fn call<T: Numbered>(node: &Node, name: &str, number: u8) -> Result<String> {
    Ok(node.call_timeout::<T, T>(name, &T::of(number), LONG)?.words())
}

impl Typed {
    pub fn act(&mut self, node: &Node, step: TypedStep) -> Result<Vec<String>> {
        match step {
            TypedStep::Publish { topic, form } => {
                self.publisher = Some(with_form!(form, publish(node, &topic))?);
            }
            TypedStep::Subscribe { topic, form } => {
                self.subscriber = Some(with_form!(form, subscribe(node, &topic))?);
            }
            TypedStep::WaitSubscribers => self.publisher.as_mut().expect("opened").wait()?,
            TypedStep::WaitPublishers => self.subscriber.as_mut().expect("opened").wait()?,
            TypedStep::Send { number } => self.publisher.as_mut().expect("opened").send(number)?,
            TypedStep::Receive => {
                return Ok(vec![self.subscriber.as_mut().expect("opened").receive()?]);
            }
            TypedStep::Echo { name, form } => {
                self.service = Some(with_form!(form, echo(node, &name))?);
            }
            TypedStep::Call { name, form, number } => {
                return Ok(vec![with_form!(form, call(node, &name, number))?]);
            }
        }
        Ok(Vec::new())
    }
}
