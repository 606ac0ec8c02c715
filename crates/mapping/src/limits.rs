//! Limits of the language: what a mapping may be, and what a run of one may take.

/// Limits of a mapping's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseLimits {
    /// Most bytes of one mapping or template.
    pub text_bytes_max: usize,
    /// Most expressions inside one another. Evaluation recurses over them, so this bounds its stack, too.
    pub depth_max: u32,
    /// Most diagnostics that the parser reports for one mapping or template, and most errors and warnings of the checker.
    /// Parsing stops there.
    pub diagnostics_max: usize,
}

impl Default for ParseLimits {
    fn default() -> Self {
        ParseLimits {
            text_bytes_max: 64 << 10,
            depth_max: 32,
            diagnostics_max: 20,
        }
    }
}

/// Limits of one run of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunLimits {
    /// Most containers of a JSON input inside one another.
    pub depth_max: u32,
    /// Most evaluations inside one another: expressions, and lists within lists that they map over.
    pub nesting_max: u32,
    /// Fuel: most steps. Evaluating an expression, looking at a value, and reading or writing 64 bytes are one step each.
    pub steps_max: u64,
    /// Most values held at a time: 16 to 32 bytes each.
    pub values_max: usize,
    /// Most bytes of text that methods make.
    pub computed_bytes_max: usize,
    /// Most bytes of output.
    pub output_bytes_max: usize,
    /// Most problems that are reported; later ones are counted only.
    pub problems_max: usize,
    /// Most bytes of a URL.
    pub url_bytes_max: usize,
    /// Most bytes of the value of a header.
    pub header_bytes_max: usize,
}

impl Default for RunLimits {
    fn default() -> Self {
        RunLimits {
            depth_max: 128,
            nesting_max: 128,
            steps_max: 10_000_000,
            values_max: 4 << 20,
            computed_bytes_max: 16 << 20,
            output_bytes_max: 64 << 20,
            problems_max: 20,
            url_bytes_max: 16 << 10,
            header_bytes_max: 16 << 10,
        }
    }
}
