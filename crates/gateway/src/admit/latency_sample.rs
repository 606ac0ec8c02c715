//! What is learnt of an overload from one request.

use http::{Response, StatusCode};
use ogive_execute::ExecuteStats;

/// What how long a request took says of others. In the extensions of a response: what it says, whatever the status.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum LatencySample {
    /// Nothing: it was refused, needed no subgraph, or took the time that its client took.
    None,
    /// That they take long, if it took longer than one may: its client left meanwhile, or it failed, perhaps for want of time.
    AtLeast,
    /// All: a subgraph has answered.
    Whole,
}

impl LatencySample {
    /// That of an operation that was executed.
    pub(crate) fn of_execution(stats: &ExecuteStats) -> Self {
        match stats.fetches_sent {
            0 => LatencySample::None,
            // Rates and circuit breakers refuse at once what would have taken its time.
            _ if stats.answer_bytes == 0 => LatencySample::AtLeast,
            _ => LatencySample::Whole,
        }
    }
    /// Says it with a response.
    pub(crate) fn tell<B>(self, response: &mut Response<B>) {
        if self != LatencySample::None {
            response.extensions_mut().insert(self);
        }
    }
    /// That of a request with this response.
    pub(crate) fn of<B>(response: &Response<B>) -> Self {
        let said = response.extensions().get::<LatencySample>().copied();
        said.unwrap_or_else(|| {
            // What was waited for in vain took its time. (No status below 500 is told as one above.)
            let status = response.status();
            if status.is_server_error() && status != StatusCode::SERVICE_UNAVAILABLE {
                LatencySample::AtLeast
            } else {
                LatencySample::None
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Found by a reviewer: whoever had used up a rate of a subgraph made all others look slow.
    #[test]
    fn what_no_subgraph_has_answered_is_no_measure_unless_it_took_long() {
        let sample = |fetches_sent, answer_bytes| {
            LatencySample::of_execution(&ExecuteStats {
                fetches_sent,
                answer_bytes,
                ..ExecuteStats::default()
            })
        };
        assert_eq!(sample(0, 0), LatencySample::None);
        assert_eq!(sample(2, 0), LatencySample::AtLeast);
        assert_eq!(sample(2, 20), LatencySample::Whole);
    }

    #[test]
    fn a_response_says_whether_what_it_took_is_a_sample() {
        let sample = |status: u16, said: Option<LatencySample>| {
            let mut response = Response::builder().status(status).body(()).unwrap();
            if let Some(said) = said {
                response.extensions_mut().insert(said);
            }
            LatencySample::of(&response)
        };
        assert_eq!(
            sample(200, Some(LatencySample::Whole)),
            LatencySample::Whole
        );
        for late in [500, 504] {
            assert_eq!(sample(late, None), LatencySample::AtLeast, "{late}");
        }
        for quick in [200, 400, 429, 503] {
            assert_eq!(sample(quick, None), LatencySample::None, "{quick}");
        }
    }
}
