//! What the agents of a run lock. What covers what stands here by hand, so that the checks do not believe the code they check.

use switchboard_coordination::Scope;

/// Every path that an agent of a run may write. Any two of [`SCOPES`] that overlap have one of these in common.
pub const PATHS: [&str; 14] = [
    "src",
    "src/main.rs",
    "src/lib.rs",
    "src/v1.rs",
    "src/readme.md",
    "src/api",
    "src/api/v1.rs",
    "src/api/v2.rs",
    "src/api/x.md",
    "src/api/deep/x.rs",
    "docs/readme.md",
    "docs/v1.rs",
    "v1.rs",
    "other",
];

/// What an agent may ask to lock, and which of [`PATHS`] that covers.
pub const SCOPES: [(&str, &[&str]); 12] = [
    ("src/main.rs", &["src/main.rs"]),
    ("src/lib.rs", &["src/lib.rs"]),
    ("src/api/v1.rs", &["src/api/v1.rs"]),
    ("src/api/v2.rs", &["src/api/v2.rs"]),
    ("docs/readme.md", &["docs/readme.md"]),
    ("src/api/", &["src/api", "src/api/v1.rs", "src/api/v2.rs", "src/api/x.md", "src/api/deep/x.rs"]),
    ("src/*.rs", &["src/main.rs", "src/lib.rs", "src/v1.rs"]),
    (
        "src/**",
        &[
            "src",
            "src/main.rs",
            "src/lib.rs",
            "src/v1.rs",
            "src/readme.md",
            "src/api",
            "src/api/v1.rs",
            "src/api/v2.rs",
            "src/api/x.md",
            "src/api/deep/x.rs",
        ],
    ),
    ("**/v1.rs", &["src/v1.rs", "src/api/v1.rs", "docs/v1.rs", "v1.rs"]),
    ("**/*.md", &["src/readme.md", "src/api/x.md", "docs/readme.md"]),
    (
        "{src,docs}/*.{md,rs}",
        &["src/main.rs", "src/lib.rs", "src/v1.rs", "src/readme.md", "docs/readme.md", "docs/v1.rs"],
    ),
    ("src/api/*/x.rs", &["src/api/deep/x.rs"]),
];

/// Which of [`PATHS`] something covers, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Covered(u16);

impl Covered {
    /// What the scope with this canonical text covers; none if it is not one of [`SCOPES`].
    pub fn by(canonical: &str) -> Option<Self> {
        SCOPES.iter().find(|(text, _)| *text == canonical || canonical_text(text) == canonical).map(
            |(_, paths)| Self(paths.iter().map(|path| Self::path(path)).fold(0, |bits, path| bits | path.0)),
        )
    }

    /// The path itself.
    pub fn path(path: &str) -> Self {
        let index = PATHS.iter().position(|known| *known == path).expect("a path of the table");
        Self(1 << index)
    }

    /// Whether both cover some path.
    pub fn overlaps(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// How the journal writes the scopes whose canonical text is not how they are written above.
fn canonical_text(text: &str) -> &str {
    match text {
        "src/api/" => "src/api/**",
        "{src,docs}/*.{md,rs}" => "{docs/*.md,docs/*.rs,src/*.md,src/*.rs}",
        other => other,
    }
}

/// The scope that an agent gets by writing this text.
pub fn scope(text: &str) -> Scope {
    Scope::parse(text).expect("a scope of the table")
}

#[cfg(test)]
mod tests {
    use switchboard_coordination::FilePath;

    use super::*;

    #[test]
    fn the_table_says_what_scopes_say() {
        for (text, _) in SCOPES {
            let covered = Covered::by(scope(text).as_str()).unwrap_or_else(|| panic!("{}", scope(text)));
            for path in PATHS {
                let says = covered.overlaps(Covered::path(path));
                assert_eq!(says, scope(text).covers(&FilePath::parse(path).unwrap()), "{text} covers {path}");
            }
            for (other, _) in SCOPES {
                let says = covered.overlaps(Covered::by(scope(other).as_str()).unwrap());
                assert_eq!(says, scope(text).overlaps(&scope(other)), "{text} overlaps {other}");
            }
        }
    }
}
