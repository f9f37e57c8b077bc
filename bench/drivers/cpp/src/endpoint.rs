//! The publisher and the subscription of any system in C++.

use crate::ffi::{Fill, Functions, Setup, TakeMessage, Text};
use bench_harness::{Error, Lane, Publisher, Result, Sink, Subscription, Topic};
use std::ffi::{CString, c_void};

struct Sender {
    functions: &'static Functions,
    publisher: *mut c_void,
    error: Text,
}

// SAFETY: each library permits to use a publisher in one thread after another.
unsafe impl Send for Sender {}

/// Opens a publisher in `place`. Returns also its address, if it has one.
pub fn publisher(
    functions: &'static Functions,
    place: &str,
    topic: &Topic,
) -> Result<(Box<dyn Publisher>, String)> {
    let mut text = Text::new();
    let open = |setup: &Setup| {
        // SAFETY: the texts of `setup` are valid during the call.
        unsafe { (functions.open_publisher)(setup, &mut text) }
    };
    let publisher = with_setup(place, topic, open)?;
    if publisher.is_null() {
        return Err(Error::new(text.get()));
    }
    let address = text.get();
    Ok((Box::new(Sender { functions, publisher, error: text }), address))
}

/// Subscribes in `place`.
pub fn subscribe(
    functions: &'static Functions,
    place: &str,
    topic: &Topic,
    sink: Sink,
) -> Result<Subscription> {
    let mut error = Text::new();
    let sink = Box::into_raw(Box::new(sink));
    let open = |setup: &Setup| {
        // SAFETY: the texts of `setup` are valid during the call, the sink until the subscriber is closed.
        unsafe {
            let take = TakeMessage { take, context: sink.cast() };
            (functions.open_subscriber)(setup, take, &mut error)
        }
    };
    let subscriber = with_setup(place, topic, open);
    // SAFETY: used by the subscriber alone, which is closed or was never opened.
    let free_sink = move || unsafe { drop(Box::from_raw(sink)) };
    match subscriber {
        Ok(subscriber) if !subscriber.is_null() => Ok(Subscription::new(move || {
            // SAFETY: closed once.
            unsafe { (functions.close_subscriber)(subscriber) };
            free_sink();
        })),
        other => {
            free_sink();
            Err(other.err().unwrap_or_else(|| Error::new(error.get())))
        }
    }
}

fn with_setup<T>(place: &str, topic: &Topic, open: impl FnOnce(&Setup) -> T) -> Result<T> {
    let (place, name) = (CString::new(place)?, CString::new(format!("/{}", topic.name))?);
    Ok(open(&Setup {
        place: place.as_ptr(),
        topic: name.as_ptr(),
        max_len: topic.max_len,
        is_urgent: topic.lane == Lane::Urgent,
    }))
}

unsafe extern "C" fn take(context: *mut c_void, data: *const u8, len: usize) {
    // SAFETY: the context is the boxed sink, used by one thread of its subscriber alone.
    let sink = unsafe { &mut *context.cast::<Sink>() };
    sink(if len == 0 {
        // An empty message may have a null pointer.
        &[]
    } else {
        // SAFETY: the message has so many bytes, which stay until this returns.
        unsafe { std::slice::from_raw_parts(data, len) }
    });
}

unsafe extern "C" fn write(context: *mut c_void, data: *mut u8, len: usize) {
    // SAFETY: the context is the closure of `send_in_place`.
    let fill = unsafe { &mut *context.cast::<&mut dyn FnMut(&mut [u8])>() };
    if len > 0 {
        // SAFETY: the library has lent so many bytes, until this returns.
        fill(unsafe { std::slice::from_raw_parts_mut(data, len) });
    }
}

impl Sender {
    fn checked(&self, succeeded: bool) -> Result<()> {
        if succeeded { Ok(()) } else { Err(Error::new(self.error.get())) }
    }
}

impl Publisher for Sender {
    fn send(&mut self, message: &[u8]) -> Result<()> {
        let (data, len) = (message.as_ptr(), message.len());
        // SAFETY: the publisher is open; the bytes are read during the call.
        let sent = unsafe { (self.functions.send)(self.publisher, data, len, &mut self.error) };
        self.checked(sent)
    }

    fn send_in_place(&mut self, len: usize, mut fill: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        let fill = Fill { write, context: (&raw mut fill).cast() };
        // SAFETY: the publisher is open; the closure is called during the call.
        let sent =
            unsafe { (self.functions.send_in_place)(self.publisher, len, fill, &mut self.error) };
        self.checked(sent)
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        // SAFETY: closed once.
        unsafe { (self.functions.close_publisher)(self.publisher) };
    }
}
