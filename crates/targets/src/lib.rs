//! Where wake-up calls go: one file per kind of target.
