//! The words of federation: which specifications exist, what their elements are called there, and which versions
//! of them are read.
//!
//! These are the specifications' *own* names. A document may rename anything through its links, so code that reads
//! a document never compares with these constants but asks [`Links`](crate::Links) what an element is called there.

use std::fmt;

/// Every specification known here lives under this address.
pub const SPECS_DOMAIN: &str = "https://specs.apollo.dev/";

/// A specification that can be linked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Spec {
    /// `@link` itself.
    Link,
    /// `@core`, the predecessor of `@link`.
    Core,
    /// How a supergraph says which subgraph resolves what.
    Join,
    /// The directives of subgraphs.
    Federation,
    /// `@tag`
    Tag,
    /// `@inaccessible`
    Inaccessible,
    /// `@authenticated`
    Authenticated,
    /// `@requiresScopes`
    RequiresScopes,
    /// `@policy`
    Policy,
    /// `@context` and `@fromContext`
    Context,
    /// `@cost` and `@listSize`
    Cost,
    /// `@cacheTag`
    CacheTag,
    /// REST connectors: a name we know and a feature we do not have.
    Connect,
}

impl Spec {
    /// All specifications in order of declaration.
    pub const ALL: [Spec; 13] = [
        Spec::Link,
        Spec::Core,
        Spec::Join,
        Spec::Federation,
        Spec::Tag,
        Spec::Inaccessible,
        Spec::Authenticated,
        Spec::RequiresScopes,
        Spec::Policy,
        Spec::Context,
        Spec::Cost,
        Spec::CacheTag,
        Spec::Connect,
    ];
    /// Its name: the last path segment of its identity and the default prefix of its elements.
    pub fn name(self) -> &'static str {
        match self {
            Spec::Link => "link",
            Spec::Core => "core",
            Spec::Join => "join",
            Spec::Federation => "federation",
            Spec::Tag => "tag",
            Spec::Inaccessible => "inaccessible",
            Spec::Authenticated => "authenticated",
            Spec::RequiresScopes => "requiresScopes",
            Spec::Policy => "policy",
            Spec::Context => "context",
            Spec::Cost => "cost",
            Spec::CacheTag => "cacheTag",
            Spec::Connect => "connect",
        }
    }
    /// The specification with this identity (URL without version), if it is known.
    pub fn from_identity(identity: &str) -> Option<Spec> {
        let name = identity.strip_prefix(SPECS_DOMAIN)?;
        Spec::ALL.into_iter().find(|spec| spec.name() == name)
    }
    /// Whether a supergraph that needs this specification `for: EXECUTION` or `for: SECURITY` can be served.
    pub fn is_served(self) -> bool {
        !matches!(self, Spec::Connect)
    }
}

/// `vMAJOR.MINOR` of a specification.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Version {
    /// Changes that break.
    pub major: u32,
    /// Changes that do not (from 1.0 on).
    pub minor: u32,
}

impl Version {
    /// `vMAJOR.MINOR`
    pub const fn new(major: u32, minor: u32) -> Self {
        Version { major, minor }
    }
    /// Reads `v0.3`.
    pub fn parse(text: &str) -> Option<Version> {
        let (major, minor) = text.strip_prefix('v')?.split_once('.')?;
        let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        (digits(major) && digits(minor)).then_some(())?;
        Some(Version::new(major.parse().ok()?, minor.parse().ok()?))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}.{}", self.major, self.minor)
    }
}

/// Oldest and newest join specification that is read.
pub const JOIN_VERSIONS: (Version, Version) = (Version::new(0, 1), Version::new(0, 5));

/// Elements of the join specification.
pub mod join {
    use super::Version;

    /// Enum of subgraphs.
    pub const GRAPH_ENUM: &str = "Graph";
    /// On a value of [`GRAPH_ENUM`]: name and URL.
    pub const GRAPH: &str = "graph";
    /// On a type: a subgraph that defines it, maybe a key.
    pub const TYPE: &str = "type";
    /// v0.1, on an entity type: the subgraph of fields without [`FIELD`].
    pub const OWNER: &str = "owner";
    /// On a field: a subgraph that resolves it.
    pub const FIELD: &str = "field";
    /// On an object or interface: a subgraph in which it implements an interface.
    pub const IMPLEMENTS: &str = "implements";
    /// On a union: a subgraph in which a type is a member.
    pub const UNION_MEMBER: &str = "unionMember";
    /// On an enum value: a subgraph that defines it.
    pub const ENUM_VALUE: &str = "enumValue";
    /// A directive carried from subgraphs without being merged.
    pub const DIRECTIVE: &str = "directive";
    /// The version in which ownership was replaced by one row per subgraph.
    pub const ROWS_SINCE: Version = Version::new(0, 2);
}

/// `@core`'s way to name what is linked; `@link` says `url`.
pub const CORE_URL_ARG: &str = "feature";
