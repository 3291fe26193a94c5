//! Paths as agents name them, and what a file lock covers.
//!
//! Words used here:
//! * a **path** is a text of **segments** with `/` between them, in normal form ([`FilePath`]). It names one file
//!   or folder and nothing in it is a wildcard;
//! * a **pattern** is a text with wildcards, which stands for many paths;
//! * a **scope** is what a lock covers: one path, or all paths of a pattern ([`Scope`]);
//! * an **alternative** is one of the texts that a pattern with braces spells: `{a,b}.ts` has two.
//!
//! Everything here is about text. Nothing looks at a disk: links are not followed, upper and lower case differ, a
//! path relative to somewhere and the absolute path of the same file are different paths, and so are `C:/x` and
//! `c:/x`. A drive letter is an ordinary first segment, and `\\host\share` becomes the absolute path `/host/share`.
//!
//! Every check takes time polynomial in the length of both texts, whatever they hold. Lengths are bounded when a
//! text is parsed, never afterwards.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::iter;
use std::ops::BitOr;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One file or folder, named literally, in normal form. Cheap to clone.
///
/// Normal form has `/` for `\`, no leading `./`, no `//`, no `/./`, no slash at the end, and `..` only where nothing
/// before it can be taken back: at the start of a relative path. What comes to nothing is written `.`, the root is
/// `/`. Stars, braces and brackets are ordinary characters, as are spaces and everything else.
///
/// Paths are ordered as their texts are, so a `BTreeMap<FilePath, _>` can be searched by `&str`. Serialized as its
/// text; a text read back is parsed again.
///
/// ```
/// # use switchboard_coordination::FilePath;
/// assert_eq!(FilePath::parse(r".\src//api/../app/[id].ts")?.as_str(), "src/app/[id].ts");
/// assert_eq!(FilePath::parse("src/app")?, FilePath::parse("./src/app/")?);
/// assert_eq!(FilePath::parse("a/../../b")?.as_str(), "../b");
/// assert_eq!(FilePath::parse("/../b")?.as_str(), "/b");
/// assert_eq!(FilePath::parse("a/..")?.as_str(), ".");
/// assert_eq!(FilePath::parse("").unwrap_err().to_string(), "a path must not be empty");
/// # Ok::<(), switchboard_coordination::InvalidPath>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct FilePath(Arc<str>);

impl FilePath {
    /// The longest path, in characters, counted as it was written.
    pub const MAX_CHARS: usize = 1_024;

    /// Brings `text` to normal form: 1 to [`FilePath::MAX_CHARS`] characters, any characters.
    pub fn parse(text: &str) -> Result<Self, InvalidPath> {
        check_length(text)?;
        if is_normal(text) {
            return Ok(Self(text.into()));
        }
        let text = with_slashes(text);
        let (root, names) = resolve(&text, |_| ());
        Ok(Self(written(root, names).into()))
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for FilePath {
    type Err = InvalidPath;

    fn from_str(text: &str) -> Result<Self, InvalidPath> {
        Self::parse(text)
    }
}

impl TryFrom<String> for FilePath {
    type Error = InvalidPath;

    fn try_from(text: String) -> Result<Self, InvalidPath> {
        Self::parse(&text)
    }
}

impl Borrow<str> for FilePath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for FilePath {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// What a file lock covers: one path, or all paths of a pattern. Cheap to clone.
///
/// | In a pattern | stands for |
/// |---|---|
/// | `*` | any characters within one segment; a segment `*` is any name |
/// | `?` | one character other than `/` |
/// | `**` | any number of whole segments, also none |
/// | `{a,b/c}` | either text; may be nested; up to [`Scope::MAX_ALTERNATIVES`] in all |
/// | `/` at the end | the folder and everything below it: `src/` is `src/**` |
///
/// All other characters stand for themselves, brackets too: `app/[id].ts` is one file. So do braces without a comma,
/// as in `{id}.ts`; they must come in pairs and within one segment. `?` can stand for a brace or a comma that would
/// be misread. A lock on a single file is better made with [`Scope::literal`], which misreads nothing.
///
/// * Alternatives are written out first and each is read as if it had been written alone. Then each is brought to
///   normal form as a [`FilePath`] is.
/// * `src/**` covers `src` itself and everything below it. `**` covers every relative path, `/**` every absolute one;
///   `/` alone means `/**`.
/// * Wildcards stand for names that begin with a dot, but never for `..`: `**` does not cover `../x`.
/// * A pattern that spells one path without wildcards is that path: it equals the literal scope.
///
/// Two scopes are equal if both are literal or both are patterns, and their texts are the same. A pattern's text is
/// its sorted alternatives with what they share at both ends taken out of the braces, so patterns that differ only in
/// how they are written are equal. Patterns that cover the same by other means are not: `{a,*}` and `*` differ.
///
/// Serialized as `{"file":"src/main.rs"}` or `{"pattern":"src/*.rs"}`, because a file may be called `*`; a text read
/// back is parsed again.
///
/// ```
/// # use switchboard_coordination::{FilePath, Scope};
/// let sources = Scope::parse("./src/**/*.{ts,tsx}")?;
/// assert_eq!(sources.as_str(), "src/**/*.ts{,x}");
/// assert!(sources.covers(&FilePath::parse("src/app/[id]/page.tsx")?));
/// assert!(!sources.covers(&FilePath::parse("src/app/page.rs")?));
///
/// assert!(sources.overlaps(&Scope::parse("src/app/")?));
/// assert!(!sources.overlaps(&Scope::parse("src/*.rs")?));
///
/// assert_eq!(
///     Scope::parse("src/**.ts").unwrap_err().to_string(),
///     "'**' must be a whole segment, as in 'src/**/main.rs', but is part of '**.ts'",
/// );
/// # Ok::<(), switchboard_coordination::InvalidPath>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope(Form);

/// The derived order and equality compare the form first, then the text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Form {
    File(FilePath),
    Pattern(Arc<Pattern>),
}

impl Scope {
    /// The longest pattern, in characters: as it was written, and again as [`Scope::as_str`] writes it.
    pub const MAX_CHARS: usize = 1_024;
    /// The most segments an alternative of a pattern may have, counted in normal form. Only [`FilePath::MAX_CHARS`]
    /// bounds a literal scope.
    pub const MAX_SEGMENTS: usize = 128;
    /// The most alternatives the braces of a pattern may spell, equal ones included.
    pub const MAX_ALTERNATIVES: usize = 64;
    /// The most characters that a pattern's alternatives may have together, in normal form.
    /// The time to compare two patterns grows with the product of these.
    pub const MAX_SPELLED_CHARS: usize = 4_096;

    /// The scope of one path.
    ///
    /// ```
    /// # use switchboard_coordination::{FilePath, Scope};
    /// let star = Scope::literal(FilePath::parse("*")?);
    /// assert!(star.covers(&FilePath::parse("*")?));
    /// assert!(!star.covers(&FilePath::parse("a")?));
    /// # Ok::<(), switchboard_coordination::InvalidPath>(())
    /// ```
    pub fn literal(path: FilePath) -> Self {
        Self(Form::File(path))
    }

    /// Reads a path or pattern of 1 to [`Scope::MAX_CHARS`] characters.
    ///
    /// ```
    /// # use switchboard_coordination::Scope;
    /// assert_eq!(Scope::parse(r"src\api\")?, Scope::parse("./src/api/**")?);
    /// assert_eq!(Scope::parse("{b,./a}.rs")?, Scope::parse("{a.rs,b.rs}")?);
    /// assert!(Scope::parse("app/[id].ts")?.is_literal());
    /// assert!(Scope::parse("app/{id.ts").is_err());
    /// # Ok::<(), switchboard_coordination::InvalidPath>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, InvalidPath> {
        check_length(text)?;
        let text = with_slashes(text);
        let mut alternatives =
            spell_out(&text)?.iter().map(|text| Alternative::parse(text)).collect::<Result<Vec<_>, _>>()?;
        alternatives.sort_unstable_by(|a, b| a.text.cmp(&b.text));
        alternatives.dedup_by(|a, b| a.text == b.text);
        match alternatives.as_slice() {
            [only] if only.is_literal() => Ok(Self::literal(FilePath(only.text.as_str().into()))),
            _ => Ok(Self(Form::Pattern(Arc::new(Pattern::new(alternatives)?)))),
        }
    }

    /// Whether this is the scope of one path.
    pub fn is_literal(&self) -> bool {
        self.as_file().is_some()
    }

    /// The path of a literal scope.
    pub fn as_file(&self) -> Option<&FilePath> {
        match &self.0 {
            Form::File(path) => Some(path),
            Form::Pattern(_) => None,
        }
    }

    /// The path or pattern in its canonical text. Parsing a pattern's text gives an equal scope.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Form::File(path) => path.as_str(),
            Form::Pattern(pattern) => &pattern.text,
        }
    }

    /// Whether `path` is in this scope.
    ///
    /// ```
    /// # use switchboard_coordination::{FilePath, Scope};
    /// let api = Scope::parse("src/api/")?;
    /// assert!(api.covers(&FilePath::parse("src/api")?));
    /// assert!(api.covers(&FilePath::parse("src/api/v1/.env")?));
    /// assert!(!api.covers(&FilePath::parse("src/apis")?));
    /// assert!(!api.covers(&FilePath::parse("/src/api")?));
    /// # Ok::<(), switchboard_coordination::InvalidPath>(())
    /// ```
    pub fn covers(&self, path: &FilePath) -> bool {
        match &self.0 {
            Form::File(file) => file == path,
            Form::Pattern(pattern) => pattern.covers(path),
        }
    }

    /// Whether some path is in both scopes. Exact and symmetric; the path may be longer than [`FilePath::MAX_CHARS`].
    ///
    /// ```
    /// # use switchboard_coordination::Scope;
    /// assert!(Scope::parse("src/*/mod.rs")?.overlaps(&Scope::parse("**/api/*.rs")?));
    /// assert!(!Scope::parse("src/*.rs")?.overlaps(&Scope::parse("src/*/mod.rs")?));
    /// # Ok::<(), switchboard_coordination::InvalidPath>(())
    /// ```
    pub fn overlaps(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Form::File(path), _) => other.covers(path),
            (_, Form::File(path)) => self.covers(path),
            (Form::Pattern(left), Form::Pattern(right)) => left.overlaps(right),
        }
    }

    /// The longest text with which every path of this scope begins.
    ///
    /// It bounds a search of a map by path. It need not end where a segment does.
    ///
    /// ```
    /// # use std::collections::BTreeMap;
    /// # use std::ops::Bound;
    /// # use switchboard_coordination::{FilePath, Scope};
    /// let scope = Scope::parse("src/api/**/v*.rs")?;
    /// assert_eq!(scope.literal_prefix(), "src/api/");
    /// assert_eq!(Scope::parse("src/api/**")?.literal_prefix(), "src/api"); // the folder is covered, too
    ///
    /// let sizes: BTreeMap<FilePath, u64> =
    ///     [(FilePath::parse("README")?, 9), (FilePath::parse("src/api/v2.rs")?, 40)].into();
    /// let prefix = scope.literal_prefix();
    /// let found = sizes
    ///     .range::<str, _>((Bound::Included(prefix), Bound::Unbounded))
    ///     .take_while(|(path, _)| path.as_str().starts_with(prefix))
    ///     .filter(|(path, _)| scope.covers(path));
    /// assert_eq!(found.map(|(_, size)| size).sum::<u64>(), 40);
    /// # Ok::<(), switchboard_coordination::InvalidPath>(())
    /// ```
    pub fn literal_prefix(&self) -> &str {
        match &self.0 {
            Form::File(path) => path.as_str(),
            Form::Pattern(pattern) => &pattern.prefix,
        }
    }
}

impl From<FilePath> for Scope {
    fn from(path: FilePath) -> Self {
        Self::literal(path)
    }
}

impl FromStr for Scope {
    type Err = InvalidPath;

    fn from_str(text: &str) -> Result<Self, InvalidPath> {
        Self::parse(text)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = if self.is_literal() { "file" } else { "pattern" };
        write!(f, "{form} {:?}", self.as_str())
    }
}

/// How a scope is serialized. `F` and `P` are borrowed texts on the way out, owned ones on the way in.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Scope", rename_all = "snake_case")]
enum Record<F, P> {
    File(F),
    Pattern(P),
}

impl Serialize for Scope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Form::File(path) => Record::<_, &str>::File(path.as_str()).serialize(serializer),
            Form::Pattern(pattern) => Record::<&str, _>::Pattern(&*pattern.text).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Scope {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Record::<FilePath, String>::deserialize(deserializer)? {
            Record::File(path) => Ok(Self::literal(path)),
            Record::Pattern(text) => Self::parse(&text).map_err(serde::de::Error::custom),
        }
    }
}

/// Why a text is not a path or pattern.
///
/// ```
/// # use switchboard_coordination::{FilePath, Scope};
/// assert_eq!(
///     FilePath::parse(&"a".repeat(1_025)).unwrap_err().to_string(),
///     "a path of 1025 characters exceeds the limit of 1024 characters",
/// );
/// assert_eq!(
///     Scope::parse("src/{a").unwrap_err().to_string(),
///     "the brace at character 5 has no partner; write '?' for a brace in a name, or lock that file literally",
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPath {
    /// The text, or an alternative of it, has no characters.
    #[error("a path must not be empty")]
    Empty,
    /// The text is longer than a path or pattern may be.
    #[error("a path of {len} characters exceeds the limit of {} characters", FilePath::MAX_CHARS)]
    TooLong {
        /// How long it is, in characters.
        len: usize,
    },
    /// The pattern is longer than it may be once it is brought to its canonical text.
    #[error(
        "a pattern of {len} characters in canonical form exceeds the limit of {} characters",
        Scope::MAX_CHARS
    )]
    CanonicalTooLong {
        /// How long the canonical text is, in characters.
        len: usize,
    },
    /// An alternative has more segments than it may.
    #[error("a pattern of {segments} segments exceeds the limit of {} segments", Scope::MAX_SEGMENTS)]
    TooManySegments {
        /// How many it has.
        segments: usize,
    },
    /// The braces spell more alternatives than they may.
    #[error(
        "braces that spell {alternatives} alternatives exceed the limit of {} alternatives; use several patterns",
        Scope::MAX_ALTERNATIVES
    )]
    TooManyAlternatives {
        /// How many they spell, at least.
        alternatives: usize,
    },
    /// The alternatives are too long, all together.
    #[error(
        "alternatives of {len} characters in all exceed the limit of {} characters; use several patterns",
        Scope::MAX_SPELLED_CHARS
    )]
    AlternativesTooLong {
        /// How long they are together, in characters.
        len: usize,
    },
    /// A brace is opened and not closed, or closed and not opened.
    #[error(
        "the brace at character {at} has no partner; write '?' for a brace in a name, or lock that file literally"
    )]
    LoneBrace {
        /// Where it stands, in characters from 1.
        at: usize,
    },
    /// Braces without a comma are part of a name, and these hold a slash.
    #[error(
        "the braces from character {at} on hold a '/' but no comma; alternatives are written '{{a,b/c}}'"
    )]
    BracesWithoutAlternatives {
        /// Where the first of them stands, in characters from 1.
        at: usize,
    },
    /// A comma that is part of a name stands between alternatives, where it would separate others.
    #[error("a comma in a name cannot stand between two sets of alternatives; write '?' for it")]
    CommaBetweenAlternatives,
    /// `**` is not alone in its segment.
    #[error("'**' must be a whole segment, as in 'src/**/main.rs', but is part of '{segment}'")]
    PartialAnyDepth {
        /// The segment.
        segment: String,
    },
    /// `..` would take back a `**`, which has no parent that could be named.
    #[error("'..' cannot follow '**': write the pattern without '..'")]
    ParentOfAnyDepth,
}

/// A scope with wildcards, ready for comparing.
struct Pattern {
    /// Canonical: equal texts have equal alternatives, so this alone is compared.
    text: Box<str>,
    prefix: Box<str>,
    /// Sorted by text, without equal ones, never empty.
    alternatives: Box<[Alternative]>,
}

impl Pattern {
    /// Takes alternatives that are sorted and differ.
    fn new(alternatives: Vec<Alternative>) -> Result<Self, InvalidPath> {
        for alternative in &alternatives {
            alternative.check_segments()?;
        }
        let spelled = alternatives.iter().map(|alternative| alternative.text.chars().count()).sum();
        if spelled > Scope::MAX_SPELLED_CHARS {
            return Err(InvalidPath::AlternativesTooLong { len: spelled });
        }
        let text = factored(&alternatives)?;
        let len = text.chars().count();
        if len > Scope::MAX_CHARS {
            return Err(InvalidPath::CanonicalTooLong { len });
        }
        let prefix = alternatives
            .iter()
            .map(Alternative::literal_prefix)
            .reduce(|a, b| a[..shared_start(&a, &b)].to_owned())
            .unwrap_or_default();
        Ok(Self { text: text.into(), prefix: prefix.into(), alternatives: alternatives.into() })
    }

    fn covers(&self, path: &FilePath) -> bool {
        if !path.as_str().starts_with(&*self.prefix) {
            return false;
        }
        let (root, names) = split_root(path.as_str());
        self.alternatives
            .iter()
            .any(|alternative| alternative.root == root && fits(&alternative.segments, names.clone()))
    }

    fn overlaps(&self, other: &Self) -> bool {
        if !(self.prefix.starts_with(&*other.prefix) || other.prefix.starts_with(&*self.prefix)) {
            return false;
        }
        self.alternatives.iter().any(|left| other.alternatives.iter().any(|right| left.overlaps(right)))
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

impl PartialOrd for Pattern {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pattern {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.text.cmp(&other.text)
    }
}

impl Hash for Pattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

/// One text that a pattern spells, in normal form.
struct Alternative {
    text: String,
    root: Root,
    segments: Box<[Segment]>,
}

impl Alternative {
    /// Reads a text without alternatives.
    fn parse(text: &str) -> Result<Self, InvalidPath> {
        if text.is_empty() {
            return Err(InvalidPath::Empty);
        }
        let mut takes_back_any_depth = false;
        let (root, mut names) = resolve(text, |name| takes_back_any_depth |= name == "**");
        if takes_back_any_depth {
            return Err(InvalidPath::ParentOfAnyDepth);
        }
        // The root is written with a slash at its end, so however it was arrived at it means all below.
        if text.ends_with('/') || (root == Root::Absolute && names.is_empty()) {
            names.push("**");
        }
        let names = canonical_order(names.into_iter().map(canonical_segment).collect::<Result<_, _>>()?);
        let segments = names.iter().map(|name| Segment::new(name)).collect();
        Ok(Self { text: written(root, names), root, segments })
    }

    fn is_literal(&self) -> bool {
        self.segments.iter().all(|segment| matches!(segment, Segment::Name(_)))
    }

    fn check_segments(&self) -> Result<(), InvalidPath> {
        let segments = self.root.parents() + self.segments.len();
        if segments > Scope::MAX_SEGMENTS { Err(InvalidPath::TooManySegments { segments }) } else { Ok(()) }
    }

    /// Since wildcards never stand for `..`, only paths from the same root can be shared.
    fn overlaps(&self, other: &Self) -> bool {
        self.root == other.root && meet(&self.segments, &other.segments, true)
    }

    fn literal_prefix(&self) -> String {
        let is_name = |segment: &&Segment| matches!(segment, Segment::Name(_));
        let names = self.segments.iter().take_while(is_name).count();
        let fixed = written(self.root, self.segments[..names].iter().map(Segment::literal_start));
        let wild = match &self.segments[names..] {
            // `src/**` covers `src`, and `**` covers `.`: nothing further is certain.
            [] => return fixed,
            [Segment::AnyDepth] if fixed == "." => return String::new(),
            [Segment::AnyDepth] => return fixed,
            [next, ..] => next.literal_start(),
        };
        match fixed.as_str() {
            "." => wild.to_owned(),
            "/" => format!("/{wild}"),
            _ => format!("{fixed}/{wild}"),
        }
    }
}

/// Where the segments of a path begin to count from. `parents` is the number of `..` before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Root {
    Absolute,
    Relative { parents: usize },
}

impl Root {
    fn parents(self) -> usize {
        match self {
            Self::Absolute => 0,
            Self::Relative { parents } => parents,
        }
    }
}

/// One segment of an alternative; never `.` or `..`.
enum Segment {
    Name(Box<str>),
    /// `*`
    AnyName,
    /// A name with wildcards in it, at least one.
    Glob(Glob),
    /// `**`
    AnyDepth,
}

impl Segment {
    /// Takes a segment in canonical form.
    fn new(text: &str) -> Self {
        match text {
            "**" => Self::AnyDepth,
            "*" => Self::AnyName,
            _ if text.contains(is_wildcard) => Self::Glob(Glob::new(text)),
            _ => Self::Name(text.into()),
        }
    }

    /// The text with which all names of this segment begin.
    fn literal_start(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::Glob(glob) => &glob.start,
            Self::AnyName | Self::AnyDepth => "",
        }
    }
}

/// A name with wildcards in it.
struct Glob {
    /// What stands before the first wildcard.
    start: Box<str>,
    symbols: Box<[Symbol]>,
}

impl Glob {
    fn new(text: &str) -> Self {
        let start = text.split(is_wildcard).next().unwrap_or_default().into();
        let symbols = text.chars().map(|char| match char {
            '*' => Symbol::Run,
            '?' => Symbol::One,
            char => Symbol::Char(char),
        });
        Self { start, symbols: symbols.collect() }
    }
}

enum Symbol {
    Char(char),
    /// `?`
    One,
    /// `*`; never two in a row.
    Run,
}

/// What a sequence to be compared is made of: segments of an alternative, or symbols of a glob.
///
/// The same two algorithms serve both, since `**` is among segments what `*` is among symbols.
trait Element {
    /// What an element stands for.
    type Item<'a>: Copy;

    /// What [`meet`] has to remember of the items passed. The default means that nothing gets here.
    type Trace: Copy + Default + PartialEq + BitOr<Output = Self::Trace>;

    /// Whether this stands for any number of items.
    fn repeats(&self) -> bool;

    fn accepts(&self, item: Self::Item<'_>) -> bool;

    /// The trace after one more item that both accept; the default if there is none.
    fn meets(&self, other: &Self, trace: Self::Trace) -> Self::Trace;
}

impl Element for Segment {
    type Item<'a> = &'a str;
    type Trace = bool;

    fn repeats(&self) -> bool {
        matches!(self, Self::AnyDepth)
    }

    fn accepts(&self, name: &str) -> bool {
        match self {
            Self::Name(own) => **own == *name,
            Self::AnyName | Self::AnyDepth => true,
            Self::Glob(glob) => fits(&glob.symbols, name.chars()),
        }
    }

    fn meets(&self, other: &Self, reached: bool) -> bool {
        reached
            && match (self, other) {
                (Self::AnyName | Self::AnyDepth, _) | (_, Self::AnyName | Self::AnyDepth) => true,
                (Self::Name(name), segment) | (segment, Self::Name(name)) => segment.accepts(name),
                (Self::Glob(left), Self::Glob(right)) => {
                    meet(&left.symbols, &right.symbols, Spelled::NOTHING).is_name()
                }
            }
    }
}

impl Element for Symbol {
    type Item<'a> = char;
    type Trace = Spelled;

    fn repeats(&self) -> bool {
        matches!(self, Self::Run)
    }

    fn accepts(&self, item: char) -> bool {
        match self {
            Self::Char(char) => *char == item,
            Self::One | Self::Run => true,
        }
    }

    fn meets(&self, other: &Self, spelled: Spelled) -> Spelled {
        match (self, other) {
            (Self::Char(left), Self::Char(right)) if left != right => Spelled::default(),
            (Self::Char('.'), _) | (_, Self::Char('.')) => spelled.then_dot(),
            _ => spelled.then_other(),
        }
    }
}

/// What the text of a segment may be, so far: any of nothing, `.`, `..`, and a text that makes a name.
///
/// `.?` and `?.` share only `..`, which is no name, and so do not overlap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Spelled(u8);

impl Spelled {
    const NOTHING: Self = Self(0b0001);
    const NAME: Self = Self(0b1000);

    fn then_dot(self) -> Self {
        Self((self.0 << 1) & 0b1110 | self.0 & Self::NAME.0)
    }

    /// After a character other than a dot, the text is a name whatever it was. A name stays one, so when any
    /// character will do this is the choice that leaves most open.
    fn then_other(self) -> Self {
        if self == Self::default() { self } else { Self::NAME }
    }

    fn is_name(self) -> bool {
        self.0 & Self::NAME.0 != 0
    }
}

impl BitOr for Spelled {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Whether `items` are what `elements` stand for, one after the other.
///
/// Only the last repeating element passed needs to be tried again at a later item: whatever the ones before it could
/// take as well, it can take itself. So there are at most as many steps as the product of both lengths.
fn fits<'a, E: Element>(elements: &[E], mut items: impl Iterator<Item = E::Item<'a>> + Clone) -> bool {
    let mut at = 0;
    let mut retry = None;
    loop {
        cost::step();
        let element = elements.get(at);
        if element.is_some_and(E::repeats) {
            at += 1;
            if at == elements.len() {
                return true;
            }
            retry = Some((at, items.clone()));
            continue;
        }
        match (element, items.next()) {
            (None, None) => return true,
            (Some(_), None) => return false,
            (Some(element), Some(item)) if element.accepts(item) => at += 1,
            (_, Some(_)) => {
                let Some((after_repeat, from)) = &mut retry else { return false };
                from.next();
                at = *after_repeat;
                items = from.clone();
            }
        }
    }
}

/// The trace of all sequences of items that both `left` and `right` stand for; the default if there are none.
///
/// Follows both at once: `row[j]` is the trace of sequences that `left[..i]` and `right[..j]` have in common. What
/// leads to a place comes from the row before or from the left, so each place is final when it is looked at.
fn meet<E: Element>(left: &[E], right: &[E], start: E::Trace) -> E::Trace {
    let nowhere = E::Trace::default();
    let mut row = vec![nowhere; right.len() + 1];
    let mut next_row = row.clone();
    row[0] = start;
    for element in left {
        meet_row(Some(element), right, &mut row, &mut next_row);
        if next_row.iter().all(|trace| *trace == nowhere) {
            return nowhere;
        }
        std::mem::swap(&mut row, &mut next_row);
        next_row.fill(nowhere);
    }
    meet_row(None, right, &mut row, &mut next_row);
    row[right.len()]
}

/// Follows `left` from every place in `row`, to places in it and in `next_row`.
fn meet_row<E: Element>(left: Option<&E>, right: &[E], row: &mut [E::Trace], next_row: &mut [E::Trace]) {
    let left_repeats = left.is_some_and(E::repeats);
    for j in 0..row.len() {
        if row[j] == E::Trace::default() {
            continue;
        }
        cost::step();
        let right_repeats = right.get(j).is_some_and(E::repeats);
        if let (Some(left), Some(right)) = (left, right.get(j)) {
            let trace = left.meets(right, row[j]);
            let place = match (left_repeats, right_repeats) {
                (true, true) => &mut row[j],
                (true, false) => &mut row[j + 1],
                (false, true) => &mut next_row[j],
                (false, false) => &mut next_row[j + 1],
            };
            *place = *place | trace;
        }
        // A repeating element may also stand for nothing.
        if left_repeats {
            next_row[j] = next_row[j] | row[j];
        }
        if right_repeats {
            row[j + 1] = row[j + 1] | row[j];
        }
    }
}

fn check_length(text: &str) -> Result<(), InvalidPath> {
    if text.is_empty() {
        return Err(InvalidPath::Empty);
    }
    // A text has at most as many characters as bytes.
    if text.len() <= FilePath::MAX_CHARS {
        return Ok(());
    }
    let len = text.chars().count();
    if len > FilePath::MAX_CHARS { Err(InvalidPath::TooLong { len }) } else { Ok(()) }
}

fn with_slashes(text: &str) -> Cow<'_, str> {
    if text.contains('\\') { text.replace('\\', "/").into() } else { text.into() }
}

/// Whether `text`, which is not empty, is in the normal form of a path.
fn is_normal(text: &str) -> bool {
    if matches!(text, "/" | ".") {
        return true;
    }
    let (mut may_climb, names) = match text.strip_prefix('/') {
        Some(names) => (false, names),
        None => (true, text),
    };
    !text.contains('\\')
        && names.split('/').all(|name| match name {
            "" | "." => false,
            ".." => may_climb,
            _ => {
                may_climb = false;
                true
            }
        })
}

/// Where `text` begins and the names it leads through; calls `takes_back` with every name that a `..` undoes.
fn resolve<'a>(text: &'a str, mut takes_back: impl FnMut(&'a str)) -> (Root, Vec<&'a str>) {
    let mut root = if text.starts_with('/') { Root::Absolute } else { Root::Relative { parents: 0 } };
    let mut names = Vec::new();
    for name in text.split('/') {
        match name {
            "" | "." => (),
            ".." => match (names.pop(), &mut root) {
                (Some(name), _) => takes_back(name),
                (None, Root::Absolute) => (),
                (None, Root::Relative { parents }) => *parents += 1,
            },
            _ => names.push(name),
        }
    }
    (root, names)
}

/// The inverse of [`resolve`].
fn written(root: Root, names: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let mut text = if root == Root::Absolute { "/".to_owned() } else { String::new() };
    for _ in 0..root.parents() {
        push_segment(&mut text, "..");
    }
    for name in names {
        push_segment(&mut text, name.as_ref());
    }
    if text.is_empty() { ".".to_owned() } else { text }
}

fn push_segment(text: &mut String, segment: &str) {
    if !matches!(text.as_str(), "" | "/") {
        text.push('/');
    }
    text.push_str(segment);
}

/// Where a path begins and its names, without allocating. Takes a text in normal form.
fn split_root(path: &str) -> (Root, Names<'_>) {
    if let Some(names) = path.strip_prefix('/') {
        return (Root::Absolute, Names::of(names));
    }
    let mut names = if path == "." { "" } else { path };
    let mut parents = 0;
    while let Some(rest) = names.strip_prefix("..").filter(|rest| rest.is_empty() || rest.starts_with('/')) {
        parents += 1;
        names = rest.strip_prefix('/').unwrap_or(rest);
    }
    (Root::Relative { parents }, Names::of(names))
}

/// The names of a path, one after the other; `None` after the last.
#[derive(Clone)]
struct Names<'a>(Option<&'a str>);

impl<'a> Names<'a> {
    fn of(text: &'a str) -> Self {
        Self((!text.is_empty()).then_some(text))
    }
}

impl<'a> Iterator for Names<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.0?;
        let (name, rest) = match text.split_once('/') {
            Some((name, rest)) => (name, Some(rest)),
            None => (text, None),
        };
        self.0 = rest;
        Some(name)
    }
}

fn is_wildcard(char: char) -> bool {
    matches!(char, '*' | '?')
}

/// Puts a segment's wildcards in the one order that means the same: `*?*` becomes `?*`.
/// A segment is never empty, so `?*` alone is written `*`.
fn canonical_segment(segment: &str) -> Result<Cow<'_, str>, InvalidPath> {
    if segment == "**" || !segment.contains('*') {
        return Ok(segment.into());
    }
    if segment.contains("**") {
        return Err(InvalidPath::PartialAnyDepth { segment: segment.to_owned() });
    }
    let mut text = String::with_capacity(segment.len());
    let mut run = false;
    for char in segment.chars() {
        if !is_wildcard(char) && std::mem::take(&mut run) {
            text.push('*');
        }
        match char {
            '*' => run = true,
            char => text.push(char),
        }
    }
    if run {
        text.push('*');
    }
    Ok(if text == "?*" { "*".into() } else { text.into() })
}

/// Puts segments of wildcards in the one order that means the same: `**/*/**` becomes `*/**`.
fn canonical_order(segments: Vec<Cow<'_, str>>) -> Vec<Cow<'_, str>> {
    let mut ordered: Vec<Cow<'_, str>> = Vec::with_capacity(segments.len());
    for segment in segments {
        match (ordered.last().map(|last| &**last), &*segment) {
            (Some("**"), "**") => (),
            (Some("**"), "*") => ordered.insert(ordered.len() - 1, segment),
            _ => ordered.push(segment),
        }
    }
    ordered
}

/// The texts that the braces in `text` spell, equal ones included: at least one, at most as many as are allowed.
fn spell_out(text: &str) -> Result<Vec<String>, InvalidPath> {
    let delimits = alternative_braces(text)?;
    let mut spelled = vec![String::new()];
    // For each set of braces that is open: what was spelled before it, and its alternatives so far.
    let mut open: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        // Within braces a comma always separates: it made alternatives of the innermost ones.
        if !(delimits[at] || byte == b',' && !open.is_empty()) {
            continue;
        }
        append(&mut spelled, &text[from..at]);
        from = at + 1;
        match byte {
            b'{' => open.push((std::mem::replace(&mut spelled, vec![String::new()]), Vec::new())),
            b',' => {
                if let Some((_, alternatives)) = open.last_mut() {
                    alternatives.append(&mut spelled);
                    check_alternatives(alternatives.len())?;
                    spelled.push(String::new());
                }
            }
            _ => {
                if let Some((before, mut alternatives)) = open.pop() {
                    alternatives.append(&mut spelled);
                    check_alternatives(before.len() * alternatives.len())?;
                    spelled = combined(&before, &alternatives);
                }
            }
        }
    }
    append(&mut spelled, &text[from..]);
    Ok(spelled)
}

fn append(texts: &mut [String], end: &str) {
    for text in texts {
        text.push_str(end);
    }
}

fn combined(starts: &[String], ends: &[String]) -> Vec<String> {
    starts.iter().flat_map(|start| ends.iter().map(move |end| format!("{start}{end}"))).collect()
}

fn check_alternatives(alternatives: usize) -> Result<(), InvalidPath> {
    if alternatives > Scope::MAX_ALTERNATIVES {
        Err(InvalidPath::TooManyAlternatives { alternatives })
    } else {
        Ok(())
    }
}

/// Says of each byte whether it is a brace around alternatives: one of a pair that has a comma directly in it.
///
/// All braces are in pairs, and those that are part of a name are within one segment, or this is an error.
/// So every segment has its braces in pairs, and `..` cannot take one back without the other.
fn alternative_braces(text: &str) -> Result<Vec<bool>, InvalidPath> {
    struct Open {
        at: usize,
        comma: bool,
        slash: bool,
    }
    let character = |at: usize| text[..at].chars().count() + 1;
    let mut delimits = vec![false; text.len()];
    let mut open: Vec<Open> = Vec::new();
    for (at, byte) in text.bytes().enumerate() {
        match (byte, open.last_mut()) {
            (b'{', _) => open.push(Open { at, comma: false, slash: false }),
            (b',', Some(inner)) => inner.comma = true,
            (b'/', Some(inner)) => inner.slash = true,
            (b'}', None) => return Err(InvalidPath::LoneBrace { at: character(at) }),
            (b'}', Some(&mut Open { at: opened, comma, slash })) => {
                if slash && !comma {
                    return Err(InvalidPath::BracesWithoutAlternatives { at: character(opened) });
                }
                (delimits[opened], delimits[at]) = (comma, comma);
                open.pop();
                if let Some(outer) = open.last_mut() {
                    outer.slash |= slash;
                }
            }
            _ => (),
        }
    }
    match open.last() {
        Some(brace) => Err(InvalidPath::LoneBrace { at: character(brace.at) }),
        None => Ok(delimits),
    }
}

/// The canonical text of a pattern: what its alternatives share at the start and at the end, and in braces between
/// these what differs. Spelled out it gives the same alternatives again.
fn factored(alternatives: &[Alternative]) -> Result<String, InvalidPath> {
    let mut middles: Vec<&str> = alternatives.iter().map(|alternative| alternative.text.as_str()).collect();
    let [first, rest @ ..] = middles.as_slice() else { return Ok(String::new()) };
    if rest.is_empty() {
        return Ok((*first).to_owned());
    }
    let shared = rest.iter().map(|text| shared_start(first, text)).min().unwrap_or_default();
    let (start, _) =
        first.split_at(paired(first[..shared].char_indices().map(|(at, c)| (at + c.len_utf8(), c))));
    for text in &mut middles {
        *text = &text[start.len()..];
    }

    let first = middles[0];
    let shared = middles[1..].iter().map(|text| shared_end(first, text)).min().unwrap_or_default();
    let from = first.len() - shared;
    let shared = paired(first[from..].char_indices().rev().map(|(at, c)| (shared - at, c)));
    let end = &first[first.len() - shared..];
    for text in &mut middles {
        *text = &text[..text.len() - shared];
    }

    if middles.iter().any(|text| text.contains(',')) {
        return Err(InvalidPath::CommaBetweenAlternatives);
    }
    Ok(format!("{start}{{{}}}{end}", middles.join(",")))
}

/// The length of the longest piece after which no brace is without its partner. Takes the characters of a text from
/// one end, each with the length of the piece that ends with it.
fn paired(pieces: impl Iterator<Item = (usize, char)>) -> usize {
    let mut depth = 0_i32;
    let mut longest = 0;
    for (len, char) in pieces {
        match char {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => (),
        }
        if depth == 0 {
            longest = len;
        }
    }
    longest
}

/// How many bytes two texts share at the start, in whole characters.
fn shared_start(left: &str, right: &str) -> usize {
    shared(left.chars(), right.chars())
}

/// How many bytes two texts share at the end, in whole characters.
fn shared_end(left: &str, right: &str) -> usize {
    shared(left.chars().rev(), right.chars().rev())
}

fn shared(left: impl Iterator<Item = char>, right: impl Iterator<Item = char>) -> usize {
    iter::zip(left, right).take_while(|(a, b)| a == b).map(|(char, _)| char.len_utf8()).sum()
}

/// Counts the steps of comparing, so that tests can bound them.
#[cfg(test)]
mod cost {
    use std::cell::Cell;

    thread_local!(static STEPS: Cell<u64> = const { Cell::new(0) });

    pub(super) fn step() {
        STEPS.set(STEPS.get() + 1);
    }

    pub(super) fn of<T>(check: impl FnOnce() -> T) -> (T, u64) {
        STEPS.set(0);
        (check(), STEPS.get())
    }
}

#[cfg(not(test))]
mod cost {
    pub(super) const fn step() {}
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(text: &str) -> FilePath {
        FilePath::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
    }

    fn scope(text: &str) -> Scope {
        Scope::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
    }

    fn refused(text: &str) -> String {
        Scope::parse(text).expect_err(text).to_string()
    }

    /// Each case is a text as written and its canonical text.
    fn check_canonical(cases: &[(&str, &str)]) {
        for (written, canonical) in cases {
            assert_eq!(scope(written).as_str(), *canonical, "{written:?}");
            assert_eq!(scope(written), scope(canonical), "{written:?}");
        }
    }

    /// Each case is a pattern, paths that it covers and paths that it does not, with spaces between them.
    fn check_covers(cases: &[(&str, &str, &str)]) {
        for (pattern, covered, other) in cases {
            for (names, expected) in [(covered, true), (other, false)] {
                for name in names.split_whitespace() {
                    let literal = Scope::literal(path(name));
                    assert_eq!(scope(pattern).covers(&path(name)), expected, "{pattern:?} covers {name:?}");
                    assert_eq!(scope(pattern).overlaps(&literal), expected, "{pattern:?} overlaps {name:?}");
                }
            }
        }
    }

    fn check_overlaps(expected: bool, cases: &[(&str, &str)]) {
        for (left, right) in cases {
            assert_eq!(scope(left).overlaps(&scope(right)), expected, "{left:?} and {right:?}");
            assert_eq!(scope(right).overlaps(&scope(left)), expected, "{right:?} and {left:?}");
        }
    }

    #[test]
    fn path_is_brought_to_normal_form() {
        for (written, normal) in [
            ("src/main.rs", "src/main.rs"),
            ("./src/main.rs", "src/main.rs"),
            ("././/src//.//main.rs", "src/main.rs"),
            (r".\src\main.rs", "src/main.rs"),
            ("src/api/../main.rs", "src/main.rs"),
            ("src/.", "src"),
            ("src/", "src"),
            ("src//", "src"),
            ("a/../../../b", "../../b"),
            ("../a/..", ".."),
            ("..", ".."),
            ("../", ".."),
            (".", "."),
            ("./", "."),
            ("a/..", "."),
            ("a/../.", "."),
            ("/", "/"),
            ("//", "/"),
            ("/.", "/"),
            ("/..", "/"),
            ("/../../a/./b", "/a/b"),
            ("...", "..."),
            ("..a/.b", "..a/.b"),
            ("a/ /b ", "a/ /b "),
            ("a/\u{e4}\u{1f600}/\n", "a/\u{e4}\u{1f600}/\n"),
        ] {
            assert_eq!(path(written).as_str(), normal, "{written:?}");
            assert_eq!(path(normal).as_str(), normal, "{normal:?}");
        }
    }

    #[test]
    fn path_takes_all_characters_literally() {
        for text in
            ["app/[id].ts", "app/[[...slug]]/page.tsx", "a*b?", "**", "{a,b}", "{", "}", "a,b", "src/**/x"]
        {
            assert_eq!(path(text).as_str(), text);
        }
        assert_ne!(path("Readme"), path("README"));
    }

    #[test]
    fn drive_letters_and_shares_are_plain_text() {
        assert_eq!(path(r"C:\work\a.rs").as_str(), "C:/work/a.rs");
        assert_eq!(path(r"\\host\share\a.rs").as_str(), "/host/share/a.rs");
        assert_eq!(path("C:/..").as_str(), ".");
        assert_ne!(path("C:/a"), path("c:/a"));
    }

    #[test]
    fn path_has_1_to_1024_characters_whatever_their_bytes() {
        let longest = "\u{1f600}".repeat(FilePath::MAX_CHARS);
        assert_eq!(path(&longest).as_str(), longest);
        assert_eq!(FilePath::parse(&(longest + "a")), Err(InvalidPath::TooLong { len: 1_025 }));
        assert_eq!(FilePath::parse(""), Err(InvalidPath::Empty));
        assert_eq!(path(&"a/".repeat(512)).as_str().len(), 1_023);
    }

    #[test]
    fn scope_is_brought_to_canonical_form() {
        check_canonical(&[
            ("./src//a.rs", "src/a.rs"),
            (r"src\api\", "src/api/**"),
            ("src/api/", "src/api/**"),
            ("src/api//", "src/api/**"),
            ("src/api/**/", "src/api/**"),
            ("src/**/**", "src/**"),
            ("src/**/*", "src/*/**"),
            ("src/**/*/**/?/*", "src/*/**/?/*"),
            ("src/*?", "src/*"),
            ("src/*??", "src/??*"),
            ("src/a*?", "src/a?*"),
            ("src/*?*a*?*", "src/?*a?*"),
            ("src/?*/x", "src/*/x"),
            ("src/*/../x", "src/x"),
            (".", "."),
            ("./", "**"),
            ("a/../", "**"),
            ("..", ".."),
            ("../", "../**"),
            ("/", "/**"),
            ("/.", "/**"),
            ("/a/..", "/**"),
            ("/../*", "/*"),
        ]);
    }

    #[test]
    fn alternatives_are_sorted_and_what_they_share_is_taken_out() {
        check_canonical(&[
            ("{b,a}", "{a,b}"),
            ("{a,a}", "a"),
            ("{a,./a,x/../a}.ts", "a.ts"),
            ("{a.ts,b.ts}", "{a,b}.ts"),
            ("src/{b,a}/x.rs", "src/{a,b}/x.rs"),
            ("src/x.{ts,tsx}", "src/x.ts{,x}"),
            ("{a,b}{c,d}", "{ac,ad,bc,bd}"),
            ("{a,{c,b}}", "{a,b,c}"),
            ("a{,/b}", "a{,/b}"),
            ("{src/,docs/}", "{docs,src}/**"),
            ("{src/,README}", "{README,src/**}"),
            ("a/{*,**}", "a/*{,*}"),
            ("{.,.a}", ".{,a}"),
            ("{a,../a}", "{../,}a"),
            ("{\u{e4},\u{e5}}", "{\u{e4},\u{e5}}"), // they share their first byte
        ]);
    }

    #[test]
    fn braces_without_a_comma_are_part_of_a_name() {
        check_canonical(&[
            ("{id}.ts", "{id}.ts"),
            ("{{cookiecutter.name}}/**", "{{cookiecutter.name}}/**"),
            ("{}", "{}"),
            ("{a{b,c}}", "{{ab},{ac}}"),
            ("{{a},b}x", "{b,{a}}x"),
            ("{{a}x,{b}x}", "{{a},{b}}x"),
        ]);
        check_covers(&[
            ("{id}.*", "{id}.ts", "id.ts"),
            ("?id?.*", "{id}.ts", "id.ts"),
            ("{a{b,c}}", "{ab}", "ab"),
        ]);
    }

    #[test]
    fn a_comma_outside_braces_is_part_of_a_name() {
        check_canonical(&[
            ("a,b", "a,b"),
            ("{a,b},v", "{a,b},v"),
            ("v,{a,b}", "v,{a,b}"),
            ("{a,ab},v", "a{,b},v"),
        ]);
        check_covers(&[("*,v", "a,v", "v"), ("{a,b},v", "a,v b,v", "a b,v,v")]);
    }

    #[test]
    fn only_one_text_without_wildcards_is_literal() {
        for (text, literal) in [
            ("src/main.rs", true),
            ("app/[id].ts", true),
            ("{a,a}", true),
            ("{a,b}", false),
            ("a*", false),
            ("a?", false),
            ("a/", false),
            ("/", false),
        ] {
            assert_eq!(scope(text).is_literal(), literal, "{text:?}");
        }
        assert_eq!(scope("./a"), Scope::literal(path("a")));
        assert_eq!(scope("./a").as_file(), Some(&path("a")));
        assert_eq!(scope("*").as_str(), Scope::literal(path("*")).as_str());
        assert_ne!(scope("*"), Scope::literal(path("*")));
    }

    #[test]
    fn star_stays_within_a_segment() {
        check_covers(&[
            ("*", "a .env a.b ... ..a", "a/b /a . .. ../a"),
            ("src/*.rs", "src/a.rs src/.rs src/a.b.rs", "src/a/b.rs src/a.rsx a.rs src"),
            ("*/*", "a/b", "a a/b/c /a/b ../a"),
            ("a*b*c", "abc aXbXc abcbc aabbcc", "ab acb abcd"),
            ("../*", "../a", ".. ../.. ../a/b a"),
            ("/*", "/a", "/ a /a/b"),
        ]);
    }

    #[test]
    fn question_mark_is_one_character_whatever_its_bytes() {
        check_covers(&[
            ("?", "a * \u{1f600}", "ab . .. a/b"),
            ("a?c", "abc a.c a?c", "ac a/c abbc"),
            ("??", "ab .a a.", "a abc .. ..."),
        ]);
    }

    #[test]
    fn two_stars_are_any_number_of_segments_also_none() {
        check_covers(&[
            ("**", ". a a/b .git/x", "/ /a .. ../a"),
            ("/**", "/ /a /a/b", ". a ../a"),
            ("../**", ".. ../a ../a/b", ". a ../.. ../../a /"),
            ("**/x", "x a/x a/b/x", "xx a/x/b ax /x"),
            ("a/**/x", "a/x a/b/x a/b/c/x a/x/x", "ax a/bx a x"),
            ("a/**/b/**/c", "a/b/c a/b/b/c/c a/x/b/y/c", "a/c a/b a/c/b"),
            ("a/**/?/*", "a/b/c a/x/y/b/c", "a/b a a/bb/cc"),
            ("**/*", "a a/b", "."),
        ]);
    }

    #[test]
    fn slash_at_the_end_is_the_folder_and_everything_below() {
        check_covers(&[
            ("src/api/", "src/api src/api/a src/api/a/b", "src src/apis src/ap /src/api"),
            ("*/", "a a/b a/b/c", "."),
            ("{src,docs}/", "src docs/a", "README"),
        ]);
    }

    #[test]
    fn braces_spell_alternatives() {
        check_covers(&[
            ("*.{ts,tsx}", "a.ts a.tsx", "a.t a.tsxx a."),
            ("src/{a,b/c}/x", "src/a/x src/b/c/x", "src/b/x src/c/x"),
            ("{a,{b,c}d}e", "ae bde cde", "be ade de"),
            ("a{,b}", "a ab", "b"),
            ("{a,..}/x", "a/x ../x", "x"),
            ("{a,/b}", "a /b", "/a b"),
        ]);
    }

    #[test]
    fn brackets_are_literal() {
        check_covers(&[
            ("app/[id].*", "app/[id].ts", "app/i.ts app/d.ts"),
            ("app/[[...slug]]/", "app/[[...slug]]/page.tsx", "app/s/page.tsx"),
        ]);
    }

    #[test]
    fn scopes_that_share_a_path_overlap() {
        check_overlaps(
            true,
            &[
                ("src/a.rs", "./src/a.rs"),
                ("src/**", "src"),
                ("src/**", "src/"),
                ("src/**", "src/*/mod.rs"),
                ("**/a", "b/**"),
                ("a/**/b", "a/*/*/b"),
                ("a/**/c/**", "**/b/**/c"),
                ("*.rs", "m*"),
                ("*a*", "*b*"),
                ("a*b", "ab*"),
                ("?b", "a?"),
                ("*.{ts,js}", "{a,b}.js"),
                ("..?", "??."),
                (".*", "*."),
                ("{a,b}/x", "b/{x,y}"),
                ("**", "."),
            ],
        );
    }

    #[test]
    fn scopes_that_share_no_path_do_not_overlap() {
        check_overlaps(
            false,
            &[
                ("src/a.rs", "src/b.rs"),
                ("src/a.rs", "/src/a.rs"),
                ("src/**", "srcs/**"),
                ("src/*", "src"),
                ("src/*", "src/*/*"),
                ("**/a", "**/b"),
                ("a/**", "b/**"),
                ("*.rs", "*.ts"),
                ("a?", "a??"),
                ("a*c", "b*c"),
                ("**", "/**"),
                ("**", "../**"),
                ("../**", "../../**"),
                ("*/x", "../x"),
                ("{a,b}/x", "{c,d}/x"),
                // They share only `.` or `..`, and these are not names.
                (".?", "?."),
                (".*", "?"),
                ("*.", "?"),
                ("a/.?/b", "a/?./b"),
            ],
        );
    }

    #[test]
    fn literal_prefix_is_the_longest_start_of_all_covered_paths() {
        for (pattern, prefix) in [
            ("src/main.rs", "src/main.rs"),
            ("src/**", "src"),
            ("src/*", "src/"),
            ("src/**/*", "src/"),
            ("src/**/x", "src/"),
            ("src/a*b", "src/a"),
            ("src/a?", "src/a"),
            ("**", ""),
            ("**/x", ""),
            ("*", ""),
            ("a*", "a"),
            ("/**", "/"),
            ("/*", "/"),
            ("/a*", "/a"),
            ("/a/**", "/a"),
            ("../**", ".."),
            ("../*", "../"),
            ("../a?", "../a"),
            ("{ab,ac}/x", "a"),
            ("{a,b}/x", ""),
            ("{src/a,src/b}/**", "src/"),
            ("{a,a/b}", "a"),
            ("{.,.a}", "."),
            ("{\u{e4},\u{e5}}", ""),
        ] {
            assert_eq!(scope(pattern).literal_prefix(), prefix, "{pattern:?}");
        }
    }

    #[test]
    fn pattern_that_cannot_be_read_says_how_to_write_it() {
        for (pattern, refusal) in [
            ("", "a path must not be empty"),
            ("{,a}", "a path must not be empty"),
            ("a**", "'**' must be a whole segment, as in 'src/**/main.rs', but is part of 'a**'"),
            ("a/***/b", "'**' must be a whole segment, as in 'src/**/main.rs', but is part of '***'"),
            ("a/**/../b", "'..' cannot follow '**': write the pattern without '..'"),
            (
                "{a,b},{c,d}",
                "a comma in a name cannot stand between two sets of alternatives; write '?' for it",
            ),
            (
                "\u{e4}{a/b}",
                "the braces from character 2 on hold a '/' but no comma; alternatives are written '{a,b/c}'",
            ),
            (
                "{a{b,c/d}e}",
                "the braces from character 1 on hold a '/' but no comma; alternatives are written '{a,b/c}'",
            ),
            (
                "\u{e4}a{b,{c}",
                "the brace at character 3 has no partner; write '?' for a brace in a name, or lock that file literally",
            ),
            (
                "{a}}",
                "the brace at character 4 has no partner; write '?' for a brace in a name, or lock that file literally",
            ),
        ] {
            assert_eq!(refused(pattern), refusal, "{pattern:?}");
        }
    }

    #[test]
    fn size_of_a_pattern_is_bounded() {
        assert_eq!(
            refused(&"*".repeat(1_025)),
            "a path of 1025 characters exceeds the limit of 1024 characters"
        );
        assert_eq!(
            refused(&format!("{}/", "a".repeat(1_023))),
            "a pattern of 1026 characters in canonical form exceeds the limit of 1024 characters"
        );
        assert!(Scope::parse(&"?/".repeat(127)).is_ok());
        assert_eq!(refused(&"?/".repeat(128)), "a pattern of 129 segments exceeds the limit of 128 segments");
        assert!(Scope::parse(&"{a,b}".repeat(6)).is_ok());
        assert_eq!(
            refused(&"{a,b}".repeat(7)),
            "braces that spell 128 alternatives exceed the limit of 64 alternatives; use several patterns"
        );
        assert_eq!(
            refused(&format!("{{{}}}", ",".repeat(64))),
            "braces that spell 65 alternatives exceed the limit of 64 alternatives; use several patterns"
        );
        assert_eq!(
            refused(&format!("{}{}", "x".repeat(60), "{a,b}".repeat(6))),
            "alternatives of 4224 characters in all exceed the limit of 4096 characters; use several patterns"
        );
        // One path is bounded by its characters only, like any path.
        assert!(Scope::parse(&["a"; 512].join("/")).is_ok());
    }

    #[test]
    fn serialized_scope_tells_a_file_from_a_pattern() {
        for (scope, json) in [
            (Scope::literal(path("*")), r#"{"file":"*"}"#),
            (scope("./a"), r#"{"file":"a"}"#),
            (scope("*"), r#"{"pattern":"*"}"#),
            (scope("src/"), r#"{"pattern":"src/**"}"#),
        ] {
            assert_eq!(serde_json::to_string(&scope).unwrap(), json);
            assert_eq!(serde_json::from_str::<Scope>(json).unwrap(), scope);
        }
        assert_eq!(serde_json::from_str::<Scope>(r#"{"pattern":"./a"}"#).unwrap(), scope("a"));
        assert!(serde_json::from_str::<Scope>(r#"{"pattern":"a**"}"#).is_err());
        assert!(serde_json::from_str::<Scope>(r#"{"file":""}"#).is_err());
        assert!(serde_json::from_str::<Scope>(r#""a""#).is_err());
    }

    #[test]
    fn serialized_path_is_its_text() {
        assert_eq!(serde_json::to_string(&path("a/[id].ts")).unwrap(), r#""a/[id].ts""#);
        assert_eq!(serde_json::from_str::<FilePath>(r#""./a/[id].ts""#).unwrap(), path("a/[id].ts"));
        assert!(serde_json::from_str::<FilePath>(r#""""#).is_err());
    }

    /// Steps are counted, not timed: a limit in seconds says more about the machine than about the code.
    #[test]
    fn hostile_patterns_cost_at_most_the_product_of_both_lengths() {
        let check = |limit: usize, check: &dyn Fn() -> bool, expected: bool| {
            let (outcome, steps) = cost::of(check);
            assert_eq!(outcome, expected);
            assert!(steps <= limit as u64, "{steps} steps, the limit is {limit}");
        };
        // Each `meet` and `fits` also looks once behind the end of both.
        let product = |left: &str, right: &str| 4 * (left.len() + 1) * (right.len() + 1);

        let (left, right) = ("*a".repeat(511) + "b", "*a".repeat(511) + "c");
        let name = "a".repeat(1_024);
        check(product(&left, &name), &|| scope(&left).covers(&path(&name)), false);
        check(product(&left, &right), &|| scope(&left).overlaps(&scope(&right)), false);

        let (left, right) = ("**/a/".repeat(63) + "b", "**/*a/".repeat(63) + "c");
        let name = "a/".repeat(511) + "c";
        check(product(&left, &name), &|| scope(&left).covers(&path(&name)), false);
        check(product(&left, &right), &|| scope(&left).overlaps(&scope(&right)), false);

        let (left, right) = ("**/*a*a*a/".repeat(60) + "b", "**/*a*aa/".repeat(60) + "c");
        let name = "aaaaaaa/".repeat(127) + "c";
        check(product(&left, &name), &|| scope(&left).covers(&path(&name)), false);
        check(product(&left, &right), &|| scope(&left).overlaps(&scope(&right)), false);

        let tail = |end: char| format!("{}{}{end}", "*{a,b}".repeat(6), "*a".repeat(20));
        let worst = 2 * Scope::MAX_SPELLED_CHARS * Scope::MAX_SPELLED_CHARS;
        check(worst, &|| scope(&tail('x')).overlaps(&scope(&tail('y'))), false);
    }

    /// Reads a segment's pattern in the most obvious way, at any cost.
    fn obviously_covers(pattern: &[char], name: &[char]) -> bool {
        let Some((symbol, rest)) = pattern.split_first() else { return name.is_empty() };
        let after = name.split_first().map(|(_, after)| after);
        match (symbol, after) {
            ('*', after) => {
                obviously_covers(rest, name) || after.is_some_and(|after| obviously_covers(pattern, after))
            }
            ('?', Some(after)) => obviously_covers(rest, after),
            (char, Some(after)) => *char == name[0] && obviously_covers(rest, after),
            (_, None) => false,
        }
    }

    fn obviously_covers_segments(pattern: &[&str], names: &[&str]) -> bool {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        match (pattern, names) {
            ([], names) => names.is_empty(),
            (["**", rest @ ..], names) => {
                obviously_covers_segments(rest, names)
                    || names.split_first().is_some_and(|(name, after)| {
                        *name != ".." && obviously_covers_segments(pattern, after)
                    })
            }
            ([_, ..], []) => false,
            ([segment, rest @ ..], [name, after @ ..]) => {
                let matches = match *name {
                    ".." => *segment == "..",
                    name => obviously_covers(&chars(segment), &chars(name)),
                };
                matches && obviously_covers_segments(rest, after)
            }
        }
    }

    /// Takes a pattern without braces, and without a `..` or slash that normal form would change.
    fn obvious(pattern: &str, path: &str) -> bool {
        fn split(text: &str) -> (bool, Vec<&str>) {
            let absolute = text.starts_with('/');
            (absolute, text.split('/').filter(|name| !matches!(*name, "" | ".")).collect())
        }
        let ((left, segments), (right, names)) = (split(pattern), split(path));
        left == right && obviously_covers_segments(&segments, &names)
    }

    /// All texts of `min` to `max` pieces.
    fn all_of(pieces: &[&str], separator: &str, min: usize, max: usize) -> Vec<String> {
        let mut all = Vec::new();
        let mut longest = vec![String::new()];
        for len in 0..=max {
            if len >= min {
                all.extend(longest.iter().cloned());
            }
            let separator = if len == 0 { "" } else { separator };
            longest = longest
                .iter()
                .flat_map(|t| pieces.iter().map(move |p| format!("{t}{separator}{p}")))
                .collect();
        }
        all
    }

    /// Checks two patterns against all of `paths`, which has a common path of the two if there is any.
    fn check_by_enumeration(left: &str, right: &str, paths: &[FilePath]) -> Result<(), TestCaseError> {
        let (l, r) = (scope(left), scope(right));
        let mut shared = None;
        for path in paths {
            let covered = (l.covers(path), r.covers(path));
            prop_assert_eq!(
                covered,
                (obvious(left, path.as_str()), obvious(right, path.as_str())),
                "{}",
                path
            );
            prop_assert_eq!(covered.0, l.overlaps(&Scope::literal(path.clone())), "{}", path);
            if covered == (true, true) {
                shared = Some(path);
            }
        }
        prop_assert_eq!(l.overlaps(&r), shared.is_some(), "they share {:?}", shared);
        prop_assert_eq!(r.overlaps(&l), shared.is_some(), "they share {:?}", shared);

        let covered = || paths.iter().filter(|path| l.covers(path)).map(|path| path.as_str().to_owned());
        let start = covered().reduce(|a, b| a[..shared_start(&a, &b)].to_owned());
        prop_assert_eq!(Some(l.literal_prefix()), start.as_deref());
        Ok(())
    }

    /// Checks what holds for any text, and gives the scope if it is one.
    fn check_any_text(text: &str) -> Result<Option<Scope>, TestCaseError> {
        if let Ok(path) = FilePath::parse(text) {
            prop_assert_eq!(FilePath::parse(path.as_str()), Ok(path.clone()));
            prop_assert!(is_normal(path.as_str()));
            let (root, names) = split_root(path.as_str());
            prop_assert_eq!(written(root, names), path.as_str());
        }
        let Ok(scope) = Scope::parse(text) else { return Ok(None) };
        prop_assert_eq!(Scope::parse(scope.as_str()), Ok(scope.clone()));
        prop_assert!(scope.overlaps(&scope));
        Ok(Some(scope))
    }

    proptest! {
        #[test]
        fn wildcards_in_a_name_agree_with_enumeration(
            left in r"[*]?([ab.?][*]?){1,3}",
            right in r"[*]?([ab.?][*]?){1,3}",
        ) {
            let is_name = |text: &str| !matches!(text, "." | "..");
            if !(is_name(&left) && is_name(&right)) {
                return Ok(());
            }
            let names: Vec<_> = all_of(&["a", "b", "."], "", 1, 6).iter().map(|name| path(name)).collect();
            check_by_enumeration(&left, &right, &names)?;
        }

        #[test]
        fn wildcards_among_segments_agree_with_enumeration(
            left in "(/|\\.\\./)?((a|b|\\?|\\*|\\*\\*)/){0,3}(a|b|\\?|\\*|\\*\\*)",
            right in "(/|\\.\\./)?((a|b|\\?|\\*|\\*\\*)/){0,3}(a|b|\\?|\\*|\\*\\*)",
        ) {
            let mut paths = Vec::new();
            for names in all_of(&["a", "b"], "/", 0, 8) {
                let roots = ["./", "../", "../../", "/"];
                paths.extend(roots.map(|root| path(&format!("{root}{names}"))));
            }
            check_by_enumeration(&left, &right, &paths)?;
        }

        #[test]
        fn alternatives_cover_what_each_of_them_covers(
            before in "(a|\\*|\\?|a/|\\*\\*/)?",
            middles in prop::collection::vec("(a|b|b/|\\.\\./|\\*b|\\?)?(a|\\?)", 1..4),
            after in "(|/|b|/b|/\\*\\*)",
        ) {
            let each = middles.iter().map(|middle| Scope::parse(&format!("{before}{middle}{after}")));
            let braces = Scope::parse(&format!("{before}{{{},{}}}{after}", middles[0], middles.join(",")));
            let Ok(each) = each.collect::<Result<Vec<_>, _>>() else {
                prop_assert!(braces.is_err());
                return Ok(());
            };
            let braces = braces.map_err(|error| TestCaseError::fail(error.to_string()))?;
            for names in all_of(&["a", "b", "ab"], "/", 0, 4) {
                for root in ["./", "../"] {
                    let path = path(&format!("{root}{names}"));
                    prop_assert_eq!(braces.covers(&path), each.iter().any(|scope| scope.covers(&path)), "{}", path);
                }
            }
            prop_assert!(each.iter().all(|scope| scope.overlaps(&braces)));
        }

        #[test]
        fn any_text_is_parsed_or_refused_and_parsed_again_the_same(text in any::<String>()) {
            check_any_text(&text)?;
        }

        #[test]
        fn any_two_patterns_overlap_symmetrically(
            left in r"[ab./\\*?{},\[\]]{0,24}",
            right in r"[ab./\\*?{},\[\]]{0,24}",
            name in r"[ab./\\*?{},\[\]]{1,24}",
        ) {
            let (Some(left), Some(right)) = (check_any_text(&left)?, check_any_text(&right)?) else { return Ok(()) };
            prop_assert_eq!(left.overlaps(&right), right.overlaps(&left));
            let path = path(&name);
            let literal = Scope::literal(path.clone());
            prop_assert_eq!(left.covers(&path), left.overlaps(&literal));
            prop_assert_eq!(left.covers(&path), literal.overlaps(&left));
            prop_assert!(!left.covers(&path) || path.as_str().starts_with(left.literal_prefix()));
            prop_assert!(!(left.covers(&path) && right.covers(&path)) || left.overlaps(&right));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn pattern_with_braces_is_parsed_again_the_same(text in r"(a|b/|\.\./|\./|/|\*|\?|\{|\}|\{a,|,|\{,b\}|\}/){1,9}") {
            check_any_text(&text)?;
        }
    }
}
