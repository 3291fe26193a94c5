//! What every backend must keep, as functions that a backend test calls.
