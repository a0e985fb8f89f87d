//! One host's list of threads: loaded early, resumed exactly, saved at a measured pace.
