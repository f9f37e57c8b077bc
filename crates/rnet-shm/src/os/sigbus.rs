//! A file that shrinks under a mapping must not kill the process.
//!
//! Whoever may write a file may also truncate it, and then the next access to a mapped page of it
//! raises SIGBUS, which ends a process that does not handle it. Journals and display servers meet
//! the same and do what is done here: a handler that maps empty pages of our own over what has
//! gone, notes it, and returns. The access is repeated, reads zeros, and the code around it looks
//! for the note where it looks for corruption anyway ([`crate::os::mapping::Mapping::is_truncated`]).
//!
//! The handler must know which addresses are ours, at any instant and without a lock. So there is
//! a table of all live mappings that is only ever added to: blocks of entries, each twice as long
//! as the one before, never moved and never freed. An entry is written by who claimed it and
//! read under a sequence number. A mapping that is looked up because of a fault is borrowed by the
//! thread that faulted, hence cannot be dropped meanwhile; only *other* entries change under the
//! handler, and those are told by their number and passed over.
//!
//! A fault elsewhere is not ours: it goes to the handler that was there before. What a program must
//! know that installs one later stands in docs/decisions/0010.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence, fence,
};

use rnet_ring::layout::PAGE_LEN_BYTES;
use rustix::mm::{MapFlags, ProtFlags};

/// Entries of the first block; each further block doubles what there is.
const FIRST_BLOCK: usize = 64;
/// Blocks there can be: more mappings than the kernel allows in one process.
const BLOCKS: usize = 24;

/// One live mapping, as the handler sees it.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Odd while the entry changes.
    version: AtomicU32,
    claimed: AtomicBool,
    writable: AtomicBool,
    truncated: AtomicBool,
    /// 0 while the entry is free.
    base: AtomicUsize,
    len: AtomicUsize,
    /// Its number in the table.
    number: AtomicUsize,
}

impl Entry {
    const fn free() -> Entry {
        Entry {
            version: AtomicU32::new(0),
            claimed: AtomicBool::new(false),
            writable: AtomicBool::new(false),
            truncated: AtomicBool::new(false),
            base: AtomicUsize::new(0),
            len: AtomicUsize::new(0),
            number: AtomicUsize::new(0),
        }
    }

    /// Whether empty pages stand in for some of the mapping, because its file was truncated.
    #[inline]
    pub(crate) fn is_truncated(&self) -> bool {
        self.truncated.load(Ordering::Acquire)
    }

    /// Writes the entry; only by who claimed it.
    fn set(&self, base: usize, len: usize, writable: bool) {
        // SYNC-ENTRY: odd, then the words, then even; `Entry::get` reads in the same order.
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        self.base.store(base, Ordering::Relaxed);
        self.len.store(len, Ordering::Relaxed);
        self.writable.store(writable, Ordering::Relaxed);
        self.version.store(version.wrapping_add(2), Ordering::Release);
    }

    /// The range of the mapping; `None` if the entry is free or just changes.
    fn get(&self) -> Option<(usize, usize, bool)> {
        let version = self.version.load(Ordering::Acquire);
        let base = self.base.load(Ordering::Relaxed);
        let len = self.len.load(Ordering::Relaxed);
        let writable = self.writable.load(Ordering::Relaxed);
        // SYNC-ENTRY: see `Entry::set`.
        fence(Ordering::Acquire);
        let same = self.version.load(Ordering::Relaxed) == version;
        (same && version & 1 == 0 && base != 0).then_some((base, len, writable))
    }
}

/// The table: never freed, so that the handler may look into it at any time.
static TABLE: [AtomicPtr<Entry>; BLOCKS] = [const { AtomicPtr::new(ptr::null_mut()) }; BLOCKS];
/// Where the search for a free entry begins: a process has thousands of mappings, and opens them one by one.
/// All before it are taken, but for some that came free just when it was moved.
static FREE_FROM: AtomicUsize = AtomicUsize::new(0);
/// Mappings of this process that were truncated so far.
static TRUNCATED: AtomicU64 = AtomicU64::new(0);
/// What was installed before us; set once, never freed.
static PREVIOUS: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());
/// Whether our handler is installed.
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Mappings of this process that were truncated so far. Who remembers what it said last knows with
/// one load whether a look at its own mappings is due.
#[inline]
pub(crate) fn truncated_so_far() -> u64 {
    TRUNCATED.load(Ordering::Relaxed)
}

/// The entry with this number, if its block is there.
fn entry_at(number: usize) -> Option<&'static Entry> {
    let (block, within) = place_of(number);
    let start = TABLE.get(block)?.load(Ordering::Acquire);
    if start.is_null() {
        return None;
    }
    // SAFETY: a block is as long as `place_of` reckons.
    let entry = unsafe { start.add(within) };
    // SAFETY: a block is published once it is whole, and never freed.
    Some(unsafe { &*entry })
}

/// Block and place in it. Block 0 has [`FIRST_BLOCK`] entries, block n as many as all before it.
fn place_of(number: usize) -> (usize, usize) {
    let above = number / FIRST_BLOCK;
    match above.checked_ilog2() {
        None => (0, number),
        Some(log) => (log as usize + 1, number - (FIRST_BLOCK << log)),
    }
}

fn block_len(block: usize) -> usize {
    if block == 0 { FIRST_BLOCK } else { FIRST_BLOCK << (block - 1) }
}

/// As [`entry_at`], making the block if it is missing.
fn entry_or_grow(number: usize) -> Option<&'static Entry> {
    if let Some(entry) = entry_at(number) {
        return Some(entry);
    }
    let (block, _) = place_of(number);
    let slot = TABLE.get(block)?;
    let new: Box<[Entry]> = (0..block_len(block)).map(|_| Entry::free()).collect();
    let new = Box::into_raw(new);
    let first = new.cast::<Entry>();
    let set = slot.compare_exchange(ptr::null_mut(), first, Ordering::AcqRel, Ordering::Acquire);
    if set.is_err() {
        // SAFETY: made above and seen by nobody, because another thread was faster.
        drop(unsafe { Box::from_raw(new) });
    }
    entry_at(number)
}

/// Notes a mapping before its first access. `None` if there are more than a process can have.
pub(crate) fn register(base: *mut u8, len: usize, writable: bool) -> Option<&'static Entry> {
    if !INSTALLED.load(Ordering::Acquire) {
        install();
    }
    let from = FREE_FROM.load(Ordering::Relaxed);
    let (mut number, mut looked_at_all) = (from, from == 0);
    loop {
        if !looked_at_all && entry_at(number).is_none() {
            // Before the table grows: one may have come free behind the place where the search began.
            (number, looked_at_all) = (0, true);
        }
        let entry = entry_or_grow(number)?;
        number += 1;
        if entry.claimed.load(Ordering::Relaxed) || entry.claimed.swap(true, Ordering::Acquire) {
            continue;
        }
        entry.number.store(number - 1, Ordering::Relaxed);
        let _ = FREE_FROM.compare_exchange(from, number, Ordering::Relaxed, Ordering::Relaxed);
        entry.truncated.store(false, Ordering::Relaxed);
        entry.set(base as usize, len, writable);
        return Some(entry);
    }
}

/// Forgets a mapping, before it is unmapped: the addresses may be another's at once.
pub(crate) fn unregister(entry: &'static Entry) {
    entry.set(0, 0, false);
    let number = entry.number.load(Ordering::Relaxed);
    entry.claimed.store(false, Ordering::Release);
    FREE_FROM.fetch_min(number, Ordering::Relaxed);
}

/// Installs the handler. Waits for nobody: a child that was forked while another thread was in here
/// would wait for ever. So two threads may do it at once, and do the same.
fn install() {
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut c_void) = on_sigbus;
    let mut before = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: a query; the kernel fills the structure.
    let asked = unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), before.as_mut_ptr()) };
    if asked != 0 {
        return;
    }
    // SAFETY: filled, as the call said.
    let before = unsafe { before.assume_init() };
    // Else another thread was faster, or we were forked between the two last steps.
    if before.sa_sigaction != handler as libc::sighandler_t {
        // First, because the handler may run as soon as it is installed.
        save_previous(before);
        // The mask of who was there before, so that its handler runs as it expects to. On the
        // alternate stack where the thread has one, and with no other flag: without SA_NODEFER a
        // fault inside the handler ends the process instead of going round for ever.
        let ours = libc::sigaction {
            sa_sigaction: handler as libc::sighandler_t,
            sa_flags: libc::SA_SIGINFO | libc::SA_ONSTACK | (before.sa_flags & libc::SA_RESTART),
            ..before
        };
        // SAFETY: the handler is async-signal-safe: atomics, one system call, errno put back.
        unsafe { libc::sigaction(libc::SIGBUS, &ours, ptr::null_mut()) };
    }
    INSTALLED.store(true, Ordering::Release);
}

/// Keeps what was installed before us, for as long as the process lives; the first one stays.
fn save_previous(before: libc::sigaction) {
    let new = Box::into_raw(Box::new(before));
    let set = PREVIOUS.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
    if set.is_err() {
        // SAFETY: made above and seen by nobody.
        drop(unsafe { Box::from_raw(new) });
    }
}

extern "C" fn on_sigbus(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the calling thread's own errno, which is always there.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let saved = unsafe { *errno };
    if !map_empty_pages(info) {
        call_previous_handler(signal, info, context);
    }
    // SAFETY: as above.
    unsafe { *errno = saved };
}

/// Maps empty pages over the end of the mapping that has lost its file; `false` if the signal is
/// about something else.
fn map_empty_pages(info: *mut libc::siginfo_t) -> bool {
    // SAFETY: the kernel hands a valid structure to a handler with SA_SIGINFO.
    let Some(info) = (unsafe { info.as_ref() }) else { return false };
    // Others: misaligned access, a memory error of the hardware, somebody's kill().
    if info.si_code != libc::BUS_ADRERR {
        return false;
    }
    // SAFETY: a fault, as the code says; those have an address.
    let address = unsafe { info.si_addr() } as usize;
    let mut number = 0;
    let found = loop {
        let Some(entry) = entry_at(number) else { return false };
        number += 1;
        if let Some((base, len, writable)) = entry.get()
            && address >= base
            && address - base < len
        {
            break (entry, base, len, writable);
        }
    };
    let (entry, base, len, writable) = found;
    // Before the pages are there: who reads a zero must be able to find out why.
    if !entry.truncated.swap(true, Ordering::AcqRel) {
        TRUNCATED.fetch_add(1, Ordering::Release);
    }
    compiler_fence(Ordering::SeqCst);
    let page = address & !(PAGE_LEN_BYTES - 1);
    // To the end, because a file is cut from some place on; the whole of it if the kernel has no
    // more mappings to give, which cutting one in two takes.
    map_anonymous(page, base + len - page, writable) || map_anonymous(base, len, writable)
}

/// Puts empty memory of our own in the place of a range of a mapping of ours.
fn map_anonymous(at: usize, len: usize, writable: bool) -> bool {
    let mut prot = ProtFlags::READ;
    prot.set(ProtFlags::WRITE, writable);
    let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
    let at = at as *mut c_void;
    // SAFETY: the range is inside a live mapping of this crate, of which the interrupted thread
    // holds a borrow, so it stays ours until we return. Its content is shared memory that may change
    // at any time; now it changes to zeros.
    unsafe { rustix::mm::mmap_anonymous(at, len, prot, flags) }.is_ok()
}

/// Lets the handler have the signal that was there before.
fn call_previous_handler(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: as in `map_empty_pages`.
    let sent = unsafe { info.as_ref() }.is_some_and(|info| info.si_code <= 0);
    // SAFETY: null, or whole before it was stored and never freed.
    let before = unsafe { PREVIOUS.load(Ordering::Acquire).as_ref() };
    match before.map_or(libc::SIG_DFL, |b| b.sa_sigaction) {
        // Ignoring a signal that was sent is possible, a fault would only come again.
        libc::SIG_IGN if sent => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: all zero is a valid action: the default one, without flags.
            let default: libc::sigaction = unsafe { std::mem::zeroed() };
            // SAFETY: async-signal-safe; from here on the signal ends the process.
            unsafe { libc::sigaction(signal, &default, ptr::null_mut()) };
            if sent {
                // A fault comes again by itself; this one has to be sent again.
                // SAFETY: async-signal-safe; it is delivered when the handler returns.
                unsafe { libc::raise(signal) };
            }
        }
        handler if before.is_some_and(|b| b.sa_flags & libc::SA_SIGINFO != 0) => {
            type SigactionHandler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut c_void);
            // SAFETY: it was installed as a handler of three arguments.
            let handler: SigactionHandler = unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: it was installed as a handler of one argument.
            let handler: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in a child that was forked in the middle of it, or of two threads at once.
    #[test]
    fn the_handler_is_installed_again_without_taking_itself_for_its_predecessor() {
        install();
        let before = PREVIOUS.load(Ordering::Acquire);
        for _ in 0..2 {
            INSTALLED.store(false, Ordering::Release);
            install();
            assert!(INSTALLED.load(Ordering::Acquire));
            assert_eq!(PREVIOUS.load(Ordering::Acquire), before);
        }
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut c_void) = on_sigbus;
        // SAFETY: set above and never freed.
        let before = unsafe { before.as_ref() }.unwrap();
        assert_ne!(before.sa_sigaction, handler as libc::sighandler_t);
    }

    #[test]
    fn every_number_has_a_place_of_its_own() {
        let mut expected = (0, 0);
        for number in 0..10_000 {
            assert_eq!(place_of(number), expected);
            expected.1 += 1;
            if expected.1 == block_len(expected.0) {
                expected = (expected.0 + 1, 0);
            }
        }
    }

    #[test]
    fn entries_are_used_again_and_found_while_others_change() {
        let word = |n: usize| (n * 4096) as *mut u8;
        let entries: Vec<_> =
            (1..200).map(|n| register(word(n), 10, n % 2 == 0).unwrap()).collect();
        for (n, entry) in (1..).zip(&entries) {
            assert_eq!(entry.get(), Some((n * 4096, 10, n % 2 == 0)));
        }
        // One entry changes all the time; whoever reads it sees both words of one change.
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let changing = entries[7];
            scope.spawn(|| {
                for n in (1..).take_while(|_| !stop.load(Ordering::Relaxed)) {
                    changing.set(n, n, false);
                }
            });
            let mut seen = 0;
            while seen < 10_000 {
                if let Some((base, len, _)) = changing.get().filter(|(base, ..)| *base != 8 * 4096)
                {
                    assert_eq!(base, len);
                    seen += 1;
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        entries.into_iter().for_each(unregister);
        // Mappings of other tests may stand beside them.
        let ours = |entry: &Entry| entry.get().is_some_and(|(_, len, _)| len == 10);
        assert!(!(0..).map_while(entry_at).any(ours));
    }
}
