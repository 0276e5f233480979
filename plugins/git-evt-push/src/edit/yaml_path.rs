//! The way from the top of a YAML document to the place that a key names.

use std::ops::Range;

use granit_parser::{Event, Parser, StructureStyle};
use kit::error::Error;

use super::{
    assignment::{Assignment, written},
    missing, not_a_value,
};

/// A node or an end of one, and the bytes that it came from.
pub type Piece<'a> = (Event<'a>, Range<usize>);

/// The nodes and their ends. Where another crate of the build turns on the parser's `comments`, it also tells of those:
/// they are no nodes.
///
/// # Errors
/// When the text is not YAML; exit code 2.
pub fn parse(text: &str) -> Result<Vec<Piece<'_>>, Error> {
    let node = |event: &Event<'_>| {
        use Event::{Alias, DocumentEnd, DocumentStart, MappingEnd, MappingStart, Scalar, SequenceEnd, SequenceStart};
        matches!(
            event,
            DocumentStart(..)
                | DocumentEnd
                | Alias(_)
                | Scalar(..)
                | SequenceStart(..)
                | SequenceEnd
                | MappingStart(..)
                | MappingEnd
        )
    };
    Parser::new_from_str(text)
        .map(|piece| piece.map(|(event, span)| (event, span.byte_range().unwrap_or_default())))
        .filter(|piece| piece.as_ref().map_or(true, |(event, _)| node(event)))
        .collect::<Result<_, _>>()
        .map_err(|error| Error::usage("bad-file", format!("not YAML: {error}")))
}

/// The index of the piece that the key leads to.
///
/// # Errors
/// When it leads nowhere, to more than one place, or through an alias; exit code 2.
pub fn find(pieces: &[Piece<'_>], assignment: &Assignment, document: Option<usize>) -> Result<usize, Error> {
    let roots: Vec<usize> =
        (1..pieces.len()).filter(|at| matches!(pieces[at - 1].0, Event::DocumentStart(..))).collect();
    if let Some(number) = document {
        let root = number.checked_sub(1).and_then(|index| roots.get(index)).ok_or_else(|| {
            Error::usage("no-document", format!("there is no document {number}: the file holds {}", roots.len()))
                .hint("--doc counts from 1")
        })?;
        return descend(pieces, *root, assignment);
    }
    let found: Vec<Result<usize, Error>> = roots.iter().map(|root| descend(pieces, *root, assignment)).collect();
    let holding: Vec<usize> = (0..found.len()).filter(|index| found[*index].is_ok()).collect();
    match holding[..] {
        [_, _, ..] => {
            let numbers: Vec<String> = holding.iter().map(|index| (index + 1).to_string()).collect();
            let key = assignment.key();
            Err(Error::usage("many-documents", format!("documents {} all hold `{key}`", numbers.join(", ")))
                .hint(format!("choose one with --doc, such as --doc {}", numbers[0])))
        }
        [index] => found[index].clone(),
        [] => {
            let first = found.into_iter().next().unwrap_or_else(|| Err(missing(assignment, 0, Some(&[]))));
            first.map_err(|error| match roots.len() {
                0 | 1 => error,
                count => Error { message: format!("{} (document 1 of {count})", error.message), ..error },
            })
        }
    }
}

fn descend(pieces: &[Piece<'_>], root: usize, assignment: &Assignment) -> Result<usize, Error> {
    let mut at = root;
    for (depth, key) in assignment.path.iter().enumerate() {
        let found = match &pieces[at].0 {
            Event::MappingStart(..) => {
                let entries = children(pieces, at);
                let named: Vec<(&str, usize)> = entries
                    .chunks_exact(2)
                    .filter_map(|pair| match &pieces[pair[0]].0 {
                        Event::Scalar(name, ..) => Some((name.as_ref(), pair[1])),
                        _ => None,
                    })
                    .collect();
                let values: Vec<usize> =
                    named.iter().filter(|(name, _)| name == key).map(|(_, value)| *value).collect();
                match values[..] {
                    [value] => Ok(value),
                    [] => Err(Some(named.iter().map(|(name, _)| (*name).to_owned()).collect())),
                    _ => {
                        let key = written(&assignment.path[..=depth]);
                        return Err(Error::usage("duplicate-key", format!("the key `{key}` stands there twice")));
                    }
                }
            }
            Event::SequenceStart(..) => {
                let items = children(pieces, at);
                let names = (0..items.len()).map(|index| index.to_string()).collect();
                key.parse().ok().and_then(|index: usize| items.get(index).copied()).ok_or(Some(names))
            }
            Event::Alias(_) => return Err(refuse(pieces, at, assignment)),
            _ => Err(None),
        };
        at = found.map_err(|names: Option<Vec<String>>| missing(assignment, depth, names.as_deref()))?;
    }
    Ok(at)
}

/// The nodes directly in the collection at `at`: keys and values in turn, or items.
fn children(pieces: &[Piece<'_>], at: usize) -> Vec<usize> {
    let mut found = Vec::new();
    let mut depth = 0;
    for (index, (event, _)) in pieces.iter().enumerate().skip(at + 1) {
        match event {
            Event::MappingEnd | Event::SequenceEnd if depth == 0 => break,
            Event::MappingEnd | Event::SequenceEnd => depth -= 1,
            _ => {
                if depth == 0 {
                    found.push(index);
                }
                if matches!(event, Event::MappingStart(..) | Event::SequenceStart(..)) {
                    depth += 1;
                }
            }
        }
    }
    found
}

/// Whether what follows these pieces stands in braces or brackets.
pub fn in_flow(pieces: &[Piece<'_>]) -> bool {
    let mut open = Vec::new();
    for (event, _) in pieces {
        match event {
            Event::MappingStart(style, ..) | Event::SequenceStart(style, ..) => open.push(*style),
            Event::MappingEnd | Event::SequenceEnd => {
                open.pop();
            }
            _ => {}
        }
    }
    open.last() == Some(&StructureStyle::Flow)
}

/// The error for a place that is no scalar.
pub fn refuse(pieces: &[Piece<'_>], at: usize, assignment: &Assignment) -> Error {
    let key = assignment.key();
    match &pieces[at].0 {
        Event::Alias(_) => Error::usage("alias", format!("the way to `{key}` leads through an alias (*name)"))
            .hint("set the value where its anchor (&name) stands; that changes every place that uses it"),
        Event::SequenceStart(..) => not_a_value(&key, "list"),
        _ => not_a_value(&key, "mapping"),
    }
}
