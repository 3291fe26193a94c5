//! Says when cron expressions are due: rows of JSON in, rows of JSON out.
//!
//! A row in is `[zone, expression, after, until, at most]`, a row out the list of the times after `after` and up to `until`,
//! in their order and no more of them than `at most`. Times are seconds since 1970. `tests/cron` compares them with
//! another implementation.
//!
//! ```sh
//! echo '["Europe/Berlin", "30 2 * * *", 1743202800, 1743375600, 10]' |
//!     cargo run --quiet -p switchboard-schedule --example next_occurrences
//! ```

#![allow(clippy::print_stdout, reason = "printing is the job here")]

use std::error::Error;
use std::io::{self, BufRead, Write};
use std::iter;

use jiff::Timestamp;
use switchboard_schedule::{Cron, Zone};

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for row in io::stdin().lock().lines() {
        let (zone, expression, after, until, at_most): (String, String, i64, i64, usize) =
            serde_json::from_str(&row?)?;
        let (zone, cron) = (Zone::named(&zone)?, Cron::parse(&expression)?);
        let next = |after: &Timestamp| cron.next_after(*after, &zone);
        let due: Vec<i64> = iter::successors(next(&Timestamp::from_second(after)?), next)
            .map(Timestamp::as_second)
            .take_while(|due| *due <= until)
            .take(at_most)
            .collect();
        writeln!(out, "{}", serde_json::to_string(&due)?)?;
    }
    Ok(())
}
