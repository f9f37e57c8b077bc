"""The worker's own half: the message, the counting and timing, and the talk with `compare`.

The counterpart of bench/harness in Rust, for one publisher or one subscription in a process. The
loops that send and receive are the same for every system: what is measured is what a Python program
gets that stamps, packs, unpacks and checks each message.
"""
