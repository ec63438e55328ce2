//! Renders the trees of a template, by the rules of Go's `text/template`.

use std::rc::Rc;

use super::error::TemplateError;
use super::function::{Args, Function, Run, Type};
use super::heap::{Heap, Sink};
use super::node::{Branch, Command, Expr, ExprKind, Node, Number, Pipe, Span};
use super::value::{Entries, Value};
use super::{Template, fields, print};

/// How much of the text an error quotes.
const QUOTED: usize = 40;

/// What goes on after a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

/// What is rendered, for this data.
pub(crate) fn render(template: &Template, data: &Value, heap: &Heap) -> Result<Vec<u8>, TemplateError> {
    let mut run = Rendering {
        template,
        heap,
        out: Sink::new(),
        variables: vec![("$", data.clone())],
        tree: &template.name,
        at: 0..0,
    };
    let nodes = template.trees.get(&template.name).map_or(&[][..], Vec::as_slice);
    match run.nodes(data, nodes) {
        Ok(_) => Ok(run.out.into_bytes()),
        Err(why) => Err(run.error(&why)),
    }
}

struct Rendering<'a> {
    template: &'a Template,
    heap: &'a Heap,
    out: Sink,
    variables: Vec<(&'a str, Value)>,
    /// The tree that is being rendered.
    tree: &'a str,
    /// What is being evaluated.
    at: Span,
}

impl<'a> Rendering<'a> {
    fn error(&self, why: &str) -> TemplateError {
        let quoted = self.template.text.get(self.at.clone()).unwrap_or_default();
        let mut short: String = quoted.chars().take(QUOTED).collect();
        if short.len() < quoted.len() {
            short.push_str("...");
        }
        let message = format!("executing {:?} at <{short}>: {why}", self.tree);
        TemplateError::at(&self.template.name, &self.template.text, self.at.start, &message)
    }

    fn at(&mut self, span: &Span) {
        self.at = span.clone();
    }

    fn nodes(&mut self, dot: &Value, nodes: &'a [Node]) -> Result<Flow, String> {
        for node in nodes {
            self.heap.work(1)?;
            let flow = self.node(dot, node)?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn node(&mut self, dot: &Value, node: &'a Node) -> Result<Flow, String> {
        match node {
            Node::Text(span) => {
                self.at(span);
                let text = self.template.text.get(span.clone()).unwrap_or_default();
                self.out.push(text)?;
            }
            Node::Action(pipe) => {
                let value = self.pipeline(dot, pipe)?;
                if pipe.variables.is_empty() {
                    self.at(&pipe.span);
                    print::printed(&mut self.out, &value, self.heap)?;
                }
            }
            Node::If(branch) => return self.branch(dot, branch, |_, dot| dot),
            Node::With(branch) => return self.branch(dot, branch, |value, _| value),
            Node::Range(branch) => return self.range(dot, branch),
            Node::Template { span, name, pipe } => self.template(dot, span, name, pipe.as_ref())?,
            Node::Break => return Ok(Flow::Break),
            Node::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    /// `inner` one level deeper, with its variables gone after it.
    fn scope<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        let visible = self.variables.len();
        let heap = self.heap;
        let result = heap.deeper(|| inner(self));
        self.variables.truncate(visible);
        result
    }

    fn branch(
        &mut self,
        dot: &Value,
        branch: &'a Branch,
        inner_dot: impl for<'v> Fn(&'v Value, &'v Value) -> &'v Value,
    ) -> Result<Flow, String> {
        self.scope(|run| {
            let value = run.pipeline(dot, &branch.pipe)?;
            if value.is_true() {
                run.nodes(inner_dot(&value, dot), &branch.body)
            } else {
                run.nodes(dot, &branch.otherwise)
            }
        })
    }

    fn range(&mut self, dot: &Value, branch: &'a Branch) -> Result<Flow, String> {
        self.scope(|run| {
            let value = run.pipeline(dot, &branch.pipe)?;
            run.at(&branch.pipe.span);
            let mut turns = 0_usize;
            match &value {
                Value::Nil => {}
                Value::Int(kind, count) => {
                    if branch.pipe.variables.len() > 1 {
                        return Err(format!("can't use {count} to iterate over more than one variable"));
                    }
                    for number in 0..*count {
                        turns += 1;
                        if run.turn(branch, Value::Nil, &Value::Int(*kind, number))? == Flow::Break {
                            break;
                        }
                    }
                }
                Value::List(list) => {
                    for (index, item) in (0..).zip(&list.items) {
                        turns += 1;
                        if run.turn(branch, Value::int(index), item)? == Flow::Break {
                            break;
                        }
                    }
                }
                Value::Map(map) => {
                    // The body may change the map.
                    let entries: Entries = map.entries.borrow().clone();
                    for (key, item) in entries {
                        turns += 1;
                        if run.turn(branch, Value::Text(key), &item)? == Flow::Break {
                            break;
                        }
                    }
                }
                other => {
                    let shown = print::shown(other, run.heap)?;
                    return Err(format!("range can't iterate over {shown}"));
                }
            }
            match turns {
                0 => run.nodes(dot, &branch.otherwise),
                _ => Ok(Flow::Next),
            }
        })
    }

    /// A turn of a loop.
    fn turn(&mut self, branch: &'a Branch, key: Value, item: &Value) -> Result<Flow, String> {
        self.heap.work(1)?;
        let visible = self.variables.len();
        let pipe = &branch.pipe;
        let given = match pipe.variables.as_slice() {
            [] => vec![],
            [only] => vec![(only, item.clone())],
            [first, second, ..] => vec![(first, key), (second, item.clone())],
        };
        for (name, value) in given {
            if pipe.assigns {
                self.assign(name, value)?;
            } else {
                self.variables.push((name, value));
            }
        }
        let flow = self.nodes(item, &branch.body);
        self.variables.truncate(visible);
        flow
    }

    fn template(&mut self, dot: &Value, span: &'a Span, name: &'a str, pipe: Option<&'a Pipe>) -> Result<(), String> {
        self.at(span);
        let Some(nodes) = self.template.trees.get(name) else {
            return Err(format!("template {name:?} not defined"));
        };
        let inner = match pipe {
            Some(pipe) => self.pipeline(dot, pipe)?,
            None => Value::Nil,
        };
        self.at(span);
        let variables = std::mem::replace(&mut self.variables, vec![("$", inner.clone())]);
        let tree = std::mem::replace(&mut self.tree, name);
        let result = self.scope(|run| run.nodes(&inner, nodes));
        if result.is_ok() {
            // An error is reported from inside.
            self.tree = tree;
            self.variables = variables;
        }
        result.map(|_| ())
    }

    fn pipeline(&mut self, dot: &Value, pipe: &'a Pipe) -> Result<Value, String> {
        let mut value = None;
        for command in &pipe.commands {
            value = Some(self.command(dot, command, value)?);
        }
        let value = value.unwrap_or(Value::Nil);
        // A loop gives its variables values of its own.
        for name in &pipe.variables {
            if pipe.assigns {
                self.assign(name, value.clone())?;
            } else {
                self.variables.push((name, value.clone()));
            }
        }
        Ok(value)
    }

    fn assign(&mut self, name: &str, value: Value) -> Result<(), String> {
        let variable = self.variables.iter_mut().rev().find(|(known, _)| *known == name);
        let (_, slot) = variable.ok_or_else(|| format!("undefined variable: {name}"))?;
        *slot = value;
        Ok(())
    }

    fn variable(&self, name: &str) -> Result<Value, String> {
        let variable = self.variables.iter().rev().find(|(known, _)| *known == name);
        let (_, value) = variable.ok_or_else(|| format!("undefined variable: {name}"))?;
        Ok(value.clone())
    }

    fn command(&mut self, dot: &Value, command: &'a Command, last: Option<Value>) -> Result<Value, String> {
        self.heap.work(1)?;
        let Some((first, arguments)) = command.words.split_first() else {
            return Ok(Value::Nil);
        };
        self.at(&first.span);
        match &first.kind {
            ExprKind::Function(function) => self.call(dot, function, &command.span, arguments, last),
            ExprKind::Field(names) => self.chain(dot.clone(), names, dot, arguments, last),
            ExprKind::Variable(name, names) if !names.is_empty() => {
                let value = self.variable(name)?;
                self.chain(value, names, dot, arguments, last)
            }
            ExprKind::Chain(inner, names) => {
                if matches!(inner.kind, ExprKind::Nil) {
                    return Err("indirection through explicit nil".to_owned());
                }
                let value = self.argument(dot, inner, Type::Any)?;
                self.at(&first.span);
                self.chain(value, names, dot, arguments, last)
            }
            _ if !arguments.is_empty() || last.is_some() => {
                let quoted = self.template.text.get(first.span.clone()).unwrap_or_default();
                Err(format!("can't give argument to non-function {quoted}"))
            }
            ExprKind::Nil => Err("nil is not a command".to_owned()),
            _ => self.argument(dot, first, Type::Any),
        }
    }

    /// The value of fields of a value; the last one may be a method with arguments.
    fn chain(
        &mut self,
        value: Value,
        names: &'a [String],
        dot: &Value,
        arguments: &'a [Expr],
        last: Option<Value>,
    ) -> Result<Value, String> {
        let at = self.at.clone();
        let Some((final_name, others)) = names.split_last() else {
            return Ok(value);
        };
        let mut receiver = Some(value).filter(|value| !matches!(value, Value::Nil));
        for name in others {
            receiver = fields::field(receiver, name, None, self.heap)?;
        }
        let mut given = None;
        if !arguments.is_empty() || last.is_some() {
            let mut values = Vec::with_capacity(arguments.len() + 1);
            for argument in arguments {
                values.push(self.argument(dot, argument, Type::Any)?);
            }
            values.extend(last);
            given = Some(values);
        }
        self.at(&at);
        Ok(fields::field(receiver, final_name, given, self.heap)?.unwrap_or(Value::Nil))
    }

    fn call(
        &mut self,
        dot: &Value,
        function: &'static Function,
        span: &'a Span,
        arguments: &'a [Expr],
        last: Option<Value>,
    ) -> Result<Value, String> {
        let name = function.name;
        let given = arguments.len() + usize::from(last.is_some());
        let wanted = function.takes.len();
        if function.more.is_some() && given < wanted {
            return Err(format!(
                "wrong number of args for {name}: want at least {wanted} got {given}"
            ));
        }
        if function.more.is_none() && given != wanted {
            return Err(format!("wrong number of args for {name}: want {wanted} got {given}"));
        }
        let run = match function.run {
            Run::Call(run) => run,
            Run::And => return self.until(dot, arguments, last, false),
            Run::Or => return self.until(dot, arguments, last, true),
        };
        let expected = |index: usize| {
            function
                .takes
                .get(index)
                .copied()
                .or(function.more)
                .unwrap_or(Type::Any)
        };
        let mut values = Vec::with_capacity(given);
        for (index, argument) in arguments.iter().enumerate() {
            values.push(self.argument(dot, argument, expected(index))?);
        }
        if let Some(last) = last {
            values.push(checked(last, expected(given - 1))?);
        }
        self.at(span);
        let read = values.iter().map(|value| match value {
            Value::Text(text) => text.len(),
            Value::List(elements) => elements.items.len() * 32,
            _ => 0,
        });
        self.heap.read(read.sum())?;
        run(&Args::new(self.heap, values)).map_err(|why| format!("error calling {name}: {why}"))
    }

    /// The first argument that is true, or false, or else the last one.
    fn until(&mut self, dot: &Value, arguments: &'a [Expr], last: Option<Value>, is: bool) -> Result<Value, String> {
        let mut value = Value::Nil;
        for argument in arguments {
            value = self.argument(dot, argument, Type::Any)?;
            if value.is_true() == is {
                return Ok(value);
            }
        }
        Ok(last.unwrap_or(value))
    }

    /// An argument of this type.
    fn argument(&mut self, dot: &Value, argument: &'a Expr, expected: Type) -> Result<Value, String> {
        self.heap.work(1)?;
        self.at(&argument.span);
        let value = match &argument.kind {
            ExprKind::Nil => {
                return match expected {
                    Type::Any | Type::Map => Ok(Value::Nil),
                    _ => Err(format!("cannot assign nil to {}", expected.name())),
                };
            }
            ExprKind::Bool(_) | ExprKind::Number(_) | ExprKind::Text(_) => return self.constant(argument, expected),
            ExprKind::Dot => dot.clone(),
            ExprKind::Field(names) => self.chain(dot.clone(), names, dot, &[], None)?,
            ExprKind::Variable(name, names) => {
                let value = self.variable(name)?;
                self.chain(value, names, dot, &[], None)?
            }
            ExprKind::Function(function) => self.call(dot, function, &argument.span, &[], None)?,
            ExprKind::Pipe(pipe) => {
                let heap = self.heap;
                heap.deeper(|| self.pipeline(dot, pipe))?
            }
            ExprKind::Chain(inner, names) => {
                let value = self.argument(dot, inner, Type::Any)?;
                self.at(&argument.span);
                self.chain(value, names, dot, &[], None)?
            }
        };
        self.at(&argument.span);
        checked(value, expected)
    }

    fn constant(&self, argument: &'a Expr, expected: Type) -> Result<Value, String> {
        let found = self.template.text.get(argument.span.clone()).unwrap_or_default();
        Ok(match (&argument.kind, expected) {
            (ExprKind::Bool(value), Type::Any | Type::Bool) => Value::Bool(*value),
            (ExprKind::Text(text), Type::Any | Type::Text) => Value::Text(Rc::from(text.as_slice())),
            (ExprKind::Number(number), Type::Any) => of_number(*number),
            (ExprKind::Number(Number { int: Some(int), .. }), Type::Int) => Value::int(*int),
            (ExprKind::Number(Number { float, .. }), Type::Float) => Value::Float(*float),
            (_, Type::Map | Type::Time) => {
                return Err(format!("can't handle {found} for arg of type {}", expected.name()));
            }
            (_, expected) => {
                let wanted = match expected {
                    Type::Int => "integer",
                    Type::Float => "float",
                    other => other.name(),
                };
                return Err(format!("expected {wanted}; found {found}"));
            }
        })
    }
}

fn of_number(number: Number) -> Value {
    match number.int.filter(|_| !number.is_float) {
        Some(int) => Value::int(int),
        None => Value::Float(number.float),
    }
}

/// A value, if a parameter of this type takes it.
fn checked(value: Value, expected: Type) -> Result<Value, String> {
    use super::value::IntKind;
    let fits = match (&value, expected) {
        (_, Type::Any)
        | (Value::Nil, Type::Map)
        | (Value::Text(_), Type::Text)
        | (Value::Int(IntKind::Int, _), Type::Int)
        | (Value::Float(_), Type::Float)
        | (Value::Bool(_), Type::Bool)
        | (Value::Time(_), Type::Time) => true,
        (Value::Map(map), Type::Map) => !map.of_texts,
        (Value::Nil, _) => return Err(format!("invalid value; expected {}", expected.name())),
        _ => false,
    };
    if fits {
        return Ok(value);
    }
    let (wanted, got) = (expected.name(), value.type_name());
    Err(format!("wrong type for value; expected {wanted}; got {got}"))
}
