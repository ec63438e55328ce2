//! Words into trees, by the rules of Go's `text/template/parse`: what is wrong is found before anything is rendered.

use super::error::TemplateError;
use super::function::Function;
use super::lexer::{Keyword, Kind, Token, words};
use super::library::Library;
use super::literal;
use super::node::{Branch, Command, Expr, ExprKind, Node, Pipe, Span, Trees};

/// How deep blocks and parentheses may be nested: each level takes room on the stack.
const DEEPEST: usize = 100;

/// How a list of nodes ended.
#[derive(Debug, PartialEq)]
enum Ending {
    End(Span),
    Else(Span),
    Text,
}

/// The trees of this template; its own has its name.
pub(crate) fn parse(name: &str, text: &str, library: &Library) -> Result<Trees, TemplateError> {
    let mut parser = Parser {
        name,
        text,
        library,
        tokens: words(text),
        next: 0,
        variables: vec!["$".to_owned()],
        ranges: 0,
        depth: 0,
        trees: Trees::new(),
    };
    let (nodes, ending) = parser.nodes()?;
    match ending {
        Ending::End(span) => Err(parser.wrong(&span, "unexpected {{end}}")),
        Ending::Else(span) => Err(parser.wrong(&span, "unexpected {{else}}")),
        Ending::Text => {
            let end = text.len();
            parser.add(name.to_owned(), nodes, &(end..end))?;
            Ok(parser.trees)
        }
    }
}

struct Parser<'a> {
    name: &'a str,
    text: &'a str,
    library: &'a Library,
    tokens: Vec<Token>,
    next: usize,
    /// The variables that are visible.
    variables: Vec<String>,
    /// How many `range` are open.
    ranges: usize,
    depth: usize,
    trees: Trees,
}

impl Parser<'_> {
    fn wrong(&self, span: &Span, message: impl AsRef<str>) -> TemplateError {
        TemplateError::at(self.name, self.text, span.start, message.as_ref())
    }

    /// The word at hand. After the last one comes that again.
    fn peek(&self) -> &Token {
        let last = self.tokens.len() - 1;
        &self.tokens[self.next.min(last)]
    }

    fn take(&mut self) -> Token {
        let token = self.peek().clone();
        self.next += 1;
        token
    }

    fn peek_word(&mut self) -> &Token {
        while self.peek().kind == Kind::Space {
            self.next += 1;
        }
        self.peek()
    }

    fn take_word(&mut self) -> Token {
        self.peek_word();
        self.take()
    }

    fn quote(&self, span: &Span) -> &str {
        self.text.get(span.clone()).unwrap_or_default()
    }

    fn unexpected(&self, token: &Token, context: &str) -> TemplateError {
        let what = match &token.kind {
            Kind::Error(why) => return self.wrong(&token.span, why),
            Kind::End => "EOF".to_owned(),
            Kind::Keyword(_) => format!("<{}>", self.quote(&token.span)),
            _ => format!("{:?}", self.quote(&token.span)),
        };
        self.wrong(&token.span, format!("unexpected {what} in {context}"))
    }

    fn close(&mut self, context: &str) -> Result<(), TemplateError> {
        let token = self.take_word();
        match token.kind {
            Kind::RightDelim => Ok(()),
            _ => Err(self.unexpected(&token, context)),
        }
    }

    /// Goes a level deeper while `inner` runs.
    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T, TemplateError>) -> Result<T, TemplateError> {
        if self.depth == DEEPEST {
            let span = self.peek().span.clone();
            return Err(self.wrong(&span, format!("nested more than {DEEPEST} deep")));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Keeps a tree. An empty one gives way to any other of its name.
    fn add(&mut self, name: String, nodes: Vec<Node>, span: &Span) -> Result<(), TemplateError> {
        let is_empty = |nodes: &[Node]| {
            nodes.iter().all(|node| match node {
                Node::Text(span) => self.quote(span).trim().is_empty(),
                _ => false,
            })
        };
        match self.trees.get(&name) {
            Some(other) if !is_empty(other) => {
                if is_empty(&nodes) {
                    return Ok(());
                }
                Err(self.wrong(span, format!("multiple definition of template {name:?}")))
            }
            _ => {
                self.trees.insert(name, nodes);
                Ok(())
            }
        }
    }

    /// Nodes up to what ends them.
    fn nodes(&mut self) -> Result<(Vec<Node>, Ending), TemplateError> {
        let mut nodes = Vec::new();
        loop {
            let token = self.take_word();
            match token.kind {
                Kind::End => return Ok((nodes, Ending::Text)),
                Kind::Text => nodes.push(Node::Text(token.span)),
                Kind::LeftDelim => match self.action()? {
                    Ok(node) => nodes.extend(node),
                    Err(ending) => return Ok((nodes, ending)),
                },
                _ => return Err(self.unexpected(&token, "input")),
            }
        }
    }

    /// What an action is, or which ending. `define` is nothing where it stands.
    fn action(&mut self) -> Result<Result<Option<Node>, Ending>, TemplateError> {
        let Kind::Keyword(keyword) = self.peek_word().kind else {
            return Ok(Ok(Some(Node::Action(self.pipeline("command", &Kind::RightDelim)?))));
        };
        let span = self.take().span;
        Ok(Ok(match keyword {
            Keyword::Define => {
                self.define(&span)?;
                None
            }
            Keyword::Block => Some(self.block()?),
            Keyword::Template => Some(self.template()?),
            Keyword::If => Some(Node::If(self.branch("if")?)),
            Keyword::With => Some(Node::With(self.branch("with")?)),
            Keyword::Range => Some(Node::Range(self.branch("range")?)),
            Keyword::Break => {
                self.close("{{break}}")?;
                self.inside_range(&span, "break")?;
                Some(Node::Break)
            }
            Keyword::Continue => {
                self.close("{{continue}}")?;
                self.inside_range(&span, "continue")?;
                Some(Node::Continue)
            }
            Keyword::End => {
                self.close("end")?;
                return Ok(Err(Ending::End(span)));
            }
            Keyword::Else => {
                // With `if` or `with` after it, the branch goes on from there.
                if !matches!(self.peek_word().kind, Kind::Keyword(Keyword::If | Keyword::With)) {
                    self.close("else")?;
                }
                return Ok(Err(Ending::Else(span)));
            }
        }))
    }

    fn inside_range(&self, span: &Span, what: &str) -> Result<(), TemplateError> {
        if self.ranges == 0 {
            return Err(self.wrong(span, format!("{{{{{what}}}}} outside {{{{range}}}}")));
        }
        Ok(())
    }

    /// A body that must end with `end`.
    fn body(&mut self, context: &str) -> Result<Vec<Node>, TemplateError> {
        let (nodes, ending) = self.deeper(Self::nodes)?;
        match ending {
            Ending::End(_) => Ok(nodes),
            Ending::Else(span) => Err(self.wrong(&span, format!("unexpected {{{{else}}}} in {context}"))),
            Ending::Text => Err(self.cut_off()),
        }
    }

    fn cut_off(&self) -> TemplateError {
        self.wrong(&self.peek().span, "unexpected EOF")
    }

    /// A tree of its own: with no variables but its dot.
    fn separate(&mut self, context: &str) -> Result<Vec<Node>, TemplateError> {
        let variables = std::mem::replace(&mut self.variables, vec!["$".to_owned()]);
        let ranges = std::mem::take(&mut self.ranges);
        let body = self.body(context);
        self.variables = variables;
        self.ranges = ranges;
        body
    }

    fn define(&mut self, span: &Span) -> Result<(), TemplateError> {
        if self.depth > 0 {
            return Err(self.wrong(span, "unexpected <define> in command"));
        }
        let name = self.template_name("define clause")?;
        self.close("define clause")?;
        let body = self.separate("define clause")?;
        self.add(name, body, span)
    }

    fn block(&mut self) -> Result<Node, TemplateError> {
        let span = self.peek_word().span.clone();
        let name = self.template_name("block clause")?;
        let pipe = self.pipeline("block clause", &Kind::RightDelim)?;
        let body = self.separate("block clause")?;
        self.add(name.clone(), body, &span)?;
        let pipe = Some(pipe);
        Ok(Node::Template { span, name, pipe })
    }

    fn template(&mut self) -> Result<Node, TemplateError> {
        let span = self.peek_word().span.clone();
        let name = self.template_name("template clause")?;
        let pipe = if self.peek_word().kind == Kind::RightDelim {
            self.next += 1;
            None
        } else {
            Some(self.pipeline("template clause", &Kind::RightDelim)?)
        };
        Ok(Node::Template { span, name, pipe })
    }

    fn template_name(&mut self, context: &str) -> Result<String, TemplateError> {
        let token = self.take_word();
        if !matches!(token.kind, Kind::Quoted | Kind::Raw) {
            return Err(self.unexpected(&token, context));
        }
        let name = self.text_of(&token.span)?;
        String::from_utf8(name).map_err(|_| self.wrong(&token.span, "the name is not UTF-8"))
    }

    fn branch(&mut self, context: &str) -> Result<Branch, TemplateError> {
        let visible = self.variables.len();
        let pipe = self.pipeline(context, &Kind::RightDelim)?;
        let loops = usize::from(context == "range");
        self.ranges += loops;
        let (body, ending) = self.deeper(Self::nodes)?;
        self.ranges -= loops;
        let otherwise = match ending {
            Ending::End(_) => Vec::new(),
            Ending::Text => return Err(self.cut_off()),
            Ending::Else(_) => self.otherwise(context)?,
        };
        self.variables.truncate(visible);
        Ok(Branch { pipe, body, otherwise })
    }

    /// What follows `else`.
    fn otherwise(&mut self, context: &str) -> Result<Vec<Node>, TemplateError> {
        let chained = match self.peek_word().kind {
            Kind::Keyword(Keyword::If) if context == "if" => Node::If,
            Kind::Keyword(Keyword::With) if context == "with" => Node::With,
            Kind::Keyword(Keyword::If | Keyword::With) => {
                let token = self.take();
                return Err(self.unexpected(&token, &format!("{{{{else}}}} of {context}")));
            }
            _ => {
                let (nodes, ending) = self.deeper(Self::nodes)?;
                return match ending {
                    Ending::End(_) => Ok(nodes),
                    Ending::Else(span) => Err(self.wrong(&span, "expected end; found {{else}}")),
                    Ending::Text => Err(self.cut_off()),
                };
            }
        };
        self.next += 1;
        let branch = self.deeper(|parser| parser.branch(context))?;
        Ok(vec![chained(branch)])
    }

    /// A pipeline up to the word that ends it, which is taken too.
    fn pipeline(&mut self, context: &str, end: &Kind) -> Result<Pipe, TemplateError> {
        let start = self.peek_word().span.start;
        let (variables, assigns) = self.declarations(context)?;
        let mut commands: Vec<Command> = Vec::new();
        loop {
            let token = self.peek_word().clone();
            match token.kind {
                Kind::RightDelim | Kind::RightParen if token.kind == *end => break,
                Kind::Bool(_)
                | Kind::Char
                | Kind::Dot
                | Kind::Field
                | Kind::Identifier
                | Kind::Number
                | Kind::Nil
                | Kind::Raw
                | Kind::Quoted
                | Kind::Variable
                | Kind::LeftParen => {
                    let command = self.command()?;
                    if !commands.is_empty() && !can_take_argument(&command) {
                        let stage = commands.len() + 1;
                        let message = format!("non executable command in pipeline stage {stage}");
                        return Err(self.wrong(&command.span, message));
                    }
                    commands.push(command);
                }
                _ => return Err(self.unexpected(&token, context)),
            }
        }
        let stop = commands.last().map_or(start, |last| last.span.end);
        if commands.is_empty() {
            let span = self.peek().span.clone();
            return Err(self.wrong(&span, format!("missing value for {context}")));
        }
        self.next += 1;
        Ok(Pipe {
            span: start..stop,
            variables,
            assigns,
            commands,
        })
    }

    /// The variables before `:=` or `=`, and whether it is the latter.
    fn declarations(&mut self, context: &str) -> Result<(Vec<String>, bool), TemplateError> {
        let mut names = Vec::new();
        while self.peek_word().kind == Kind::Variable {
            let before = self.next;
            let token = self.take();
            let name = self.quote(&token.span).to_owned();
            match self.peek_word().kind {
                Kind::Assign | Kind::Declare => {
                    let assigns = self.take().kind == Kind::Assign;
                    names.push(name);
                    self.visible(&names, assigns);
                    return Ok((names, assigns));
                }
                Kind::Comma => {
                    names.push(name);
                    let comma = self.take().span;
                    if context != "range" || names.len() > 1 {
                        return Err(self.wrong(&comma, format!("too many declarations in {context}")));
                    }
                    if !matches!(self.peek_word().kind, Kind::Variable) {
                        return Err(self.wrong(&comma, "range can only initialize variables"));
                    }
                }
                _ => {
                    self.next = before;
                    break;
                }
            }
        }
        if names.is_empty() {
            return Ok((names, false));
        }
        let span = self.peek().span.clone();
        Err(self.wrong(&span, format!("missing := after the variables of {context}")))
    }

    fn visible(&mut self, names: &[String], assigns: bool) {
        if !assigns {
            self.variables.extend_from_slice(names);
        }
    }

    /// Operands up to a pipe, which is taken too, or the end of the pipeline.
    fn command(&mut self) -> Result<Command, TemplateError> {
        let mut words = Vec::new();
        loop {
            self.peek_word();
            words.extend(self.operand()?);
            let token = self.take();
            match token.kind {
                Kind::Space => {}
                Kind::Pipe => break,
                Kind::RightDelim | Kind::RightParen => {
                    self.next -= 1;
                    break;
                }
                _ => return Err(self.unexpected(&token, "operand")),
            }
        }
        match (words.first(), words.last()) {
            (Some(first), Some(last)) => Ok(Command {
                span: first.span.start..last.span.end,
                words,
            }),
            _ => Err(self.wrong(&self.peek().span, "empty command")),
        }
    }

    /// A term with the fields after it.
    fn operand(&mut self) -> Result<Option<Expr>, TemplateError> {
        let Some(term) = self.term()? else { return Ok(None) };
        let mut fields = Vec::new();
        let mut end = term.span.end;
        while self.peek().kind == Kind::Field {
            let token = self.take();
            end = token.span.end;
            fields.push(field_name(self.quote(&token.span)));
        }
        if fields.is_empty() {
            return Ok(Some(term));
        }
        let span = term.span.start..end;
        let kind = match term.kind {
            ExprKind::Field(mut names) => {
                names.extend(fields);
                ExprKind::Field(names)
            }
            ExprKind::Variable(name, mut names) => {
                names.extend(fields);
                ExprKind::Variable(name, names)
            }
            ExprKind::Bool(_) | ExprKind::Text(_) | ExprKind::Number(_) | ExprKind::Nil | ExprKind::Dot => {
                let quoted = self.quote(&term.span);
                return Err(self.wrong(&span, format!("unexpected . after term {quoted:?}")));
            }
            _ => ExprKind::Chain(Box::new(term), fields),
        };
        Ok(Some(Expr { span, kind }))
    }

    fn term(&mut self) -> Result<Option<Expr>, TemplateError> {
        let token = self.peek_word().clone();
        let span = token.span.clone();
        let quoted = self.quote(&span);
        let kind = match token.kind {
            Kind::Identifier => ExprKind::Function(self.function(quoted, &span)?),
            Kind::Dot => ExprKind::Dot,
            Kind::Nil => ExprKind::Nil,
            Kind::Bool(value) => ExprKind::Bool(value),
            Kind::Field => ExprKind::Field(vec![field_name(quoted)]),
            Kind::Variable => {
                if !self.variables.iter().any(|name| name == quoted) {
                    return Err(self.wrong(&span, format!("undefined variable {quoted:?}")));
                }
                ExprKind::Variable(quoted.to_owned(), Vec::new())
            }
            Kind::Number => ExprKind::Number(literal::number(quoted).map_err(|why| self.wrong(&span, why))?),
            Kind::Char => ExprKind::Number(literal::character(quoted).map_err(|why| self.wrong(&span, why))?),
            Kind::Quoted | Kind::Raw => ExprKind::Text(self.text_of(&span)?),
            Kind::LeftParen => {
                self.next += 1;
                let end = Kind::RightParen;
                let pipe = self.deeper(|parser| parser.pipeline("parenthesized pipeline", &end))?;
                let span = span.start..self.tokens[self.next - 1].span.end;
                let kind = ExprKind::Pipe(Box::new(pipe));
                return Ok(Some(Expr { span, kind }));
            }
            _ => return Ok(None),
        };
        self.next += 1;
        Ok(Some(Expr { span, kind }))
    }

    fn function(&self, name: &str, span: &Span) -> Result<&'static Function, TemplateError> {
        let found = self.library.named(name);
        found.ok_or_else(|| self.wrong(span, self.library.why_not(name)))
    }

    fn text_of(&self, span: &Span) -> Result<Vec<u8>, TemplateError> {
        literal::text(self.quote(span)).map_err(|why| self.wrong(span, why))
    }
}

fn field_name(token: &str) -> String {
    token.trim_start_matches('.').to_owned()
}

/// Whether a command may get the result of the one before it.
fn can_take_argument(command: &Command) -> bool {
    let first = command.words.first().map(|word| &word.kind);
    !matches!(
        first,
        Some(ExprKind::Bool(_) | ExprKind::Dot | ExprKind::Nil | ExprKind::Number(_) | ExprKind::Text(_))
    )
}
