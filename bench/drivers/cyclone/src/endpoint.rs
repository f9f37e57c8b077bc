//! The writer and the reader.

use crate::domain::{Domain, checked, delete};
use crate::ffi::{self, Entity};
use bench_harness::{Net, Profile, Publisher, Result, Sink, Subscription, Topic};
use std::ffi::{CStr, CString, c_char, c_void};
use std::path::Path;

/// A writer. The domain is left after the entities in it are deleted: fields drop in their order.
struct Writer {
    entities: Entities,
    writer: Entity,
    batched: bool,
    scratch: Vec<u8>,
    _domain: Domain,
}

/// Deleted in this order.
struct Entities(Vec<Entity>);

impl Drop for Entities {
    fn drop(&mut self) {
        self.0.drain(..).for_each(delete);
    }
}

/// Data of a reader that is freed after its entity is deleted.
struct Kept {
    shim: *mut c_void,
    sink: *mut Sink,
}

impl Drop for Kept {
    fn drop(&mut self) {
        // SAFETY: the reader that used both has been deleted, which waits for its listener.
        unsafe {
            ffi::shim_reader_free(self.shim);
            drop(Box::from_raw(self.sink));
        }
    }
}

pub fn publisher(net: &Net, topic: &Topic) -> Result<Box<dyn Publisher>> {
    let domain = Domain::join(net, topic)?;
    let mut entities = Entities(vec![open_topic(&domain, net, topic)?]);
    // SAFETY: both entities are open.
    let writer = unsafe { ffi::shim_writer(domain.participant, entities.0[0]) };
    let writer = checked("dds_create_writer", writer)?;
    entities.0.insert(0, writer);
    let batched = topic.profile == Profile::Throughput;
    Ok(Box::new(Writer { entities, writer, batched, scratch: Vec::new(), _domain: domain }))
}

pub fn subscribe(net: &Net, topic: &Topic, sink: Sink) -> Result<Subscription> {
    let domain = Domain::join(net, topic)?;
    let mut entities = Entities(vec![open_topic(&domain, net, topic)?]);
    let sink = Box::into_raw(Box::new(sink));
    let mut shim = std::ptr::null_mut();
    // SAFETY: the sink lives until `kept` is dropped, after the reader; `shim` is set in any case.
    let reader = unsafe {
        ffi::shim_reader(domain.participant, entities.0[0], deliver, sink.cast(), &mut shim)
    };
    let kept = Kept { shim, sink };
    entities.0.insert(0, checked("dds_create_reader", reader)?);
    Ok(Subscription::new(move || {
        drop(entities);
        drop(kept);
        drop(domain);
    }))
}

/// Hands a message on; called on Cyclone's receive thread.
unsafe extern "C" fn deliver(context: *mut c_void, data: *const u8, len: usize) {
    // SAFETY: the context is the boxed sink, used by this reader's listener alone, one call at a time.
    let sink = unsafe { &mut *context.cast::<Sink>() };
    if len == 0 {
        // An empty sequence may have no buffer.
        return sink(&[]);
    }
    // SAFETY: the sequence has so many bytes, and stays until the listener returns.
    sink(unsafe { std::slice::from_raw_parts(data, len) });
}

fn open_topic(domain: &Domain, net: &Net, topic: &Topic) -> Result<Entity> {
    // Another run may have the same domain.
    let name = CString::new(format!("rt/{}/{}", net.tag().replace('-', "_"), topic.name))?;
    // SAFETY: the name is read during the call.
    checked("dds_create_topic", unsafe { ffi::shim_topic(domain.participant, name.as_ptr()) })
}

impl Publisher for Writer {
    fn send(&mut self, message: &[u8]) -> Result<()> {
        let len = u32::try_from(message.len())?;
        // SAFETY: the bytes are read during the call.
        let written = unsafe { ffi::shim_write(self.writer, message.as_ptr(), len) };
        checked("dds_write", written).map(drop)
    }

    fn flush(&mut self) -> Result<()> {
        if self.batched {
            // SAFETY: the writer is open.
            unsafe { ffi::dds_write_flush(self.writer) };
        }
        Ok(())
    }

    // Cyclone lends memory only for shared memory: a message object is kept and used again.
    fn send_in_place(&mut self, len: usize, fill: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.resize(len, 0);
        fill(&mut scratch);
        let sent = self.send(&scratch);
        self.scratch = scratch;
        sent
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Deleting the writer waits (a second at most) for acknowledgements.
        let _ = self.flush();
        self.entities.0.drain(..).for_each(delete);
    }
}

/// The version in the name of the library's file, which is what was loaded; the library has no call for it.
pub fn version() -> Result<String> {
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null::<c_char>(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // SAFETY: any address may be asked about.
    if unsafe { libc::dladdr(ffi::dds_strretcode as *const c_void, &mut info) } == 0 {
        return Ok("unknown".into());
    }
    // SAFETY: a successful call has set the name, which stays while the library is loaded.
    let path = unsafe { CStr::from_ptr(info.dli_fname) }.to_str()?;
    let file = std::fs::canonicalize(Path::new(path))?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    Ok(name.trim_start_matches("libddsc.so.").into())
}
