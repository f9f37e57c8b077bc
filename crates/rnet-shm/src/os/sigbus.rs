//! Prevents a file that shrinks under a mapping from killing the process.
//!
//! A process that may write a file may also truncate it. The next access to a removed mapped page then raises
//! SIGBUS, which kills a process without a handler. Journals and display servers solve this in the same way:
//! a handler maps anonymous zero pages over the removed range, sets a flag, and returns. The access is
//! repeated and reads zeros, and the surrounding code checks the flag where it checks for corruption anyway
//! ([`crate::os::mapping::Mapping::is_truncated`]).
//!
//! The handler must know which addresses are ours, at any instant and without a lock. So a table of all live
//! mappings only ever grows: blocks of entries, each twice as long as the previous one, are never moved and
//! never freed. The thread that claimed an entry writes it; readers use a sequence number. The faulting
//! thread borrows the mapping that the handler looks up, so that mapping cannot be dropped meanwhile; only
//! *other* entries change under the handler, and their sequence numbers make it skip them.
//!
//! A fault elsewhere is not ours: the previous handler gets it. docs/decisions/0010 describes what a program
//! must observe that installs a handler later.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence, fence,
};

use rnet_ring::layout::PAGE_LEN_BYTES;
use rustix::mm::{MapFlags, ProtFlags};

/// Entries of the first block; each further block doubles the total.
const FIRST_BLOCK: usize = 64;
/// Maximum number of blocks: more mappings than the kernel permits in one process.
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

    /// Whether zero pages replace part of the mapping, because its file was truncated.
    #[inline]
    pub(crate) fn is_truncated(&self) -> bool {
        self.truncated.load(Ordering::Acquire)
    }

    /// Writes the entry; only the thread that claimed it may do so.
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

    /// The range of the mapping; `None` if the entry is free or changing.
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

/// The table: never freed, so that the handler may read it at any time.
static TABLE: [AtomicPtr<Entry>; BLOCKS] = [const { AtomicPtr::new(ptr::null_mut()) }; BLOCKS];
/// Where the search for a free entry starts: a process has thousands of mappings, and opens them one by one.
/// All entries before it are taken, except some that became free while it was moved.
static FREE_FROM: AtomicUsize = AtomicUsize::new(0);
/// Number of truncated mappings of this process so far.
static TRUNCATED: AtomicU64 = AtomicU64::new(0);
/// The handler that was installed before ours; set once, never freed.
static PREVIOUS: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());
/// Whether our handler is installed.
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Number of truncated mappings of this process so far. A caller that remembers the last value detects with
/// one load whether to check its own mappings.
#[inline]
pub(crate) fn truncated_so_far() -> u64 {
    TRUNCATED.load(Ordering::Relaxed)
}

/// The entry with this number, if its block exists.
fn entry_at(number: usize) -> Option<&'static Entry> {
    let (block, within) = place_of(number);
    let start = TABLE.get(block)?.load(Ordering::Acquire);
    if start.is_null() {
        return None;
    }
    // SAFETY: a block is as long as `place_of` computes.
    let entry = unsafe { start.add(within) };
    // SAFETY: a block is published once it is complete, and never freed.
    Some(unsafe { &*entry })
}

/// Block and index in it. Block 0 has [`FIRST_BLOCK`] entries, block n as many as all previous blocks.
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

/// Like [`entry_at`], but creates a missing block.
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
        // SAFETY: created above and never published, because another thread was faster.
        drop(unsafe { Box::from_raw(new) });
    }
    entry_at(number)
}

/// Registers a mapping before its first access. `None` if a process cannot have more.
pub(crate) fn register(base: *mut u8, len: usize, writable: bool) -> Option<&'static Entry> {
    if !INSTALLED.load(Ordering::Acquire) {
        install();
    }
    let from = FREE_FROM.load(Ordering::Relaxed);
    let (mut number, mut looked_at_all) = (from, from == 0);
    loop {
        if !looked_at_all && entry_at(number).is_none() {
            // Before the table grows: an entry before the start of the search may be free.
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

/// Unregisters a mapping before it is unmapped: the addresses may be reused at once.
pub(crate) fn unregister(entry: &'static Entry) {
    entry.set(0, 0, false);
    let number = entry.number.load(Ordering::Relaxed);
    entry.claimed.store(false, Ordering::Release);
    FREE_FROM.fetch_min(number, Ordering::Relaxed);
}

/// Installs the handler. Never blocks: a child that was forked while another thread was in here would wait
/// forever. So two threads may do it at the same time, with the same result.
fn install() {
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut c_void) = on_sigbus;
    let mut before = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: a query; the kernel fills the structure.
    let asked = unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), before.as_mut_ptr()) };
    if asked != 0 {
        return;
    }
    // SAFETY: filled, as the call reported.
    let before = unsafe { before.assume_init() };
    // Otherwise another thread was faster, or this process was forked between the last two steps.
    if before.sa_sigaction != handler as libc::sighandler_t {
        // Saved first, because the handler may run as soon as it is installed.
        save_previous(before);
        // The mask of the previous handler, so that it runs as it expects to. On the alternate stack if the
        // thread has one, and with no other flag: without SA_NODEFER, a fault inside the handler kills the
        // process instead of looping forever.
        let ours = libc::sigaction {
            sa_sigaction: handler as libc::sighandler_t,
            sa_flags: libc::SA_SIGINFO | libc::SA_ONSTACK | (before.sa_flags & libc::SA_RESTART),
            ..before
        };
        // SAFETY: the handler is async-signal-safe: atomics, one system call, errno restored.
        unsafe { libc::sigaction(libc::SIGBUS, &ours, ptr::null_mut()) };
    }
    INSTALLED.store(true, Ordering::Release);
}

/// Keeps the previous handler for the lifetime of the process; the first one stays.
fn save_previous(before: libc::sigaction) {
    let new = Box::into_raw(Box::new(before));
    let set = PREVIOUS.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
    if set.is_err() {
        // SAFETY: created above and never published.
        drop(unsafe { Box::from_raw(new) });
    }
}

extern "C" fn on_sigbus(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the calling thread's own errno, which always exists.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let saved = unsafe { *errno };
    if !map_empty_pages(info) {
        call_previous_handler(signal, info, context);
    }
    // SAFETY: as above.
    unsafe { *errno = saved };
}

/// Maps zero pages over the part of the mapping that has lost its file; `false` if the signal has another
/// cause.
fn map_empty_pages(info: *mut libc::siginfo_t) -> bool {
    // SAFETY: the kernel passes a valid structure to a handler with SA_SIGINFO.
    let Some(info) = (unsafe { info.as_ref() }) else { return false };
    // Other causes: misaligned access, a hardware memory error, or kill().
    if info.si_code != libc::BUS_ADRERR {
        return false;
    }
    // SAFETY: a fault, according to the code; faults have an address.
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
    // Set before the pages are mapped: a thread that reads a zero must be able to detect the cause.
    if !entry.truncated.swap(true, Ordering::AcqRel) {
        TRUNCATED.fetch_add(1, Ordering::Release);
    }
    compiler_fence(Ordering::SeqCst);
    let page = address & !(PAGE_LEN_BYTES - 1);
    // To the end, because truncation removes everything after an offset. The whole mapping if the kernel
    // permits no more mappings, because splitting one needs another.
    map_anonymous(page, base + len - page, writable) || map_anonymous(base, len, writable)
}

/// Replaces a range of one of our mappings by anonymous zero memory.
fn map_anonymous(at: usize, len: usize, writable: bool) -> bool {
    let mut prot = ProtFlags::READ;
    prot.set(ProtFlags::WRITE, writable);
    let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
    let at = at as *mut c_void;
    // SAFETY: the range is inside a live mapping of this crate, which the interrupted thread borrows, so it
    // stays mapped until we return. Its content is shared memory that may change at any time; now it changes
    // to zeros.
    unsafe { rustix::mm::mmap_anonymous(at, len, prot, flags) }.is_ok()
}

/// Passes the signal to the previous handler.
fn call_previous_handler(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: as in `map_empty_pages`.
    let sent = unsafe { info.as_ref() }.is_some_and(|info| info.si_code <= 0);
    // SAFETY: null, or complete before it was stored and never freed.
    let before = unsafe { PREVIOUS.load(Ordering::Acquire).as_ref() };
    match before.map_or(libc::SIG_DFL, |b| b.sa_sigaction) {
        // A signal that was sent can be ignored; a fault would recur.
        libc::SIG_IGN if sent => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: all zeros is a valid action: the default one, without flags.
            let default: libc::sigaction = unsafe { std::mem::zeroed() };
            // SAFETY: async-signal-safe; from here on the signal kills the process.
            unsafe { libc::sigaction(signal, &default, ptr::null_mut()) };
            if sent {
                // A fault recurs by itself; this signal must be sent again.
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

    /// As in a child that was forked during installation, or with two concurrent threads.
    #[test]
    fn reinstalled_handler_does_not_become_its_own_predecessor() {
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
    fn every_number_has_a_distinct_entry() {
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
    fn entries_are_reused_and_found_while_others_change() {
        let word = |n: usize| (n * 4096) as *mut u8;
        let entries: Vec<_> =
            (1..200).map(|n| register(word(n), 10, n % 2 == 0).unwrap()).collect();
        for (n, entry) in (1..).zip(&entries) {
            assert_eq!(entry.get(), Some((n * 4096, 10, n % 2 == 0)));
        }
        // One entry changes all the time; a reader sees both words of one change.
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
        // The table may also hold mappings of other tests.
        let ours = |entry: &Entry| entry.get().is_some_and(|(_, len, _)| len == 10);
        assert!(!(0..).map_while(entry_at).any(ours));
    }
}
