//! The rnet command line.
