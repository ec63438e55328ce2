//! Evaluates CEL.

use super::budget::{Answer, Budget, no_overload, size};
use super::functions::Call;
use super::parser::{Expr, Loop, LoopKind};
use super::value::{List, MapOf, Text, Val};

/// The variables, those of inner loops last.
pub(super) struct Scope<'a, 'n>(Vec<(&'n str, Val<'a>)>);

impl<'a, 'n> Scope<'a, 'n> {
    pub(super) fn new(variables: [(&'n str, Val<'a>); 3]) -> Self {
        Self(variables.into())
    }

    fn get(&self, name: &str) -> Answer<'a> {
        let found = self.0.iter().rev().find(|(known, _)| *known == name);
        found
            .map(|(_, value)| value.clone())
            .ok_or_else(|| format!("no such attribute: {name}"))
    }
}

/// Evaluates an expression.
pub(super) fn eval<'a, 'e: 'a>(expr: &'e Expr, scope: &mut Scope<'a, 'e>, budget: &Budget) -> Answer<'a> {
    budget.work(1)?;
    match expr {
        Expr::Literal(value) => Ok(value.clone()),
        Expr::Variable(name) => scope.get(name),
        Expr::Select(operand, field) => {
            let operand = eval(operand, scope, budget)?;
            select(&operand, field).ok_or_else(|| format!("no such key: {field}"))
        }
        Expr::Has(operand, field) => {
            let operand = eval(operand, scope, budget)?;
            Ok(Val::Bool(select(&operand, field).is_some()))
        }
        Expr::Call(function, arguments) => {
            let mut values = Vec::with_capacity(arguments.len());
            for argument in arguments {
                values.push(eval(argument, scope, budget)?);
            }
            for value in &values {
                budget.read(size(value))?;
                if matches!(function.name, "==" | "!=" | "in") {
                    budget.compare(value)?;
                }
            }
            let name = function.name;
            (function.run)(&Call {
                name,
                values: &values,
                budget,
            })
        }
        Expr::And(left, right) => both(left, right, false, scope, budget),
        Expr::Or(left, right) => both(left, right, true, scope, budget),
        Expr::Choice(parts) => {
            let [condition, then, other] = parts.as_ref();
            match eval(condition, scope, budget)? {
                Val::Bool(true) => eval(then, scope, budget),
                Val::Bool(false) => eval(other, scope, budget),
                _ => Err(no_overload()),
            }
        }
        Expr::List(items) => {
            budget.elements(items.len())?;
            let items = items
                .iter()
                .map(|item| eval(item, scope, budget))
                .collect::<Result<Vec<_>, _>>()?;
            Ok(Val::List(List::Made(items.into())))
        }
        Expr::Map(entries) => map(entries, scope, budget),
        Expr::Loop(each) => each_of(each, scope, budget),
    }
}

/// A field of a map. Nothing else has fields.
fn select<'a>(operand: &Val<'a>, field: &str) -> Option<Val<'a>> {
    match operand {
        Val::Map(map) => map.get(&Val::Text(Text::Json(field))),
        _ => None,
    }
}

/// `&&` and `||`: what one side decides does not need the other one, which may even fail.
fn both<'a, 'e: 'a>(
    left: &'e Expr,
    right: &'e Expr,
    decisive: bool,
    scope: &mut Scope<'a, 'e>,
    budget: &Budget,
) -> Answer<'a> {
    let first = eval(left, scope, budget);
    if matches!(first, Ok(Val::Bool(value)) if value == decisive) {
        return first;
    }
    let second = eval(right, scope, budget);
    if matches!(second, Ok(Val::Bool(value)) if value == decisive) {
        return second;
    }
    match (first?, second?) {
        (Val::Bool(_), Val::Bool(_)) => Ok(Val::Bool(!decisive)),
        _ => Err(no_overload()),
    }
}

fn map<'a, 'e: 'a>(entries: &'e [(Expr, Expr)], scope: &mut Scope<'a, 'e>, budget: &Budget) -> Answer<'a> {
    budget.elements(2 * entries.len())?;
    let mut found: Vec<(Val<'a>, Val<'a>)> = Vec::new();
    for (key, value) in entries {
        let key = eval(key, scope, budget)?;
        if !matches!(key, Val::Bool(_) | Val::Int(_) | Val::Uint(_) | Val::Text(_)) {
            return Err(format!("unsupported key type: {}", key.type_name()));
        }
        budget.work(found.len())?;
        let value = eval(value, scope, budget)?;
        // Of two values with one key, the last one counts.
        match found.iter_mut().find(|(known, _)| known.equals(&key)) {
            Some((_, before)) => *before = value,
            None => found.push((key, value)),
        }
    }
    Ok(Val::Map(MapOf::Made(found.into())))
}

/// What a macro goes through.
fn items_of<'a>(value: &Val<'a>, budget: &Budget) -> Result<List<'a>, String> {
    match value {
        Val::List(items) => Ok(items.clone()),
        Val::Map(map) => {
            budget.elements(map.len())?;
            Ok(List::Made(map.keys().into()))
        }
        _ => Err(no_overload()),
    }
}

fn each_of<'a, 'e: 'a>(each: &'e Loop, scope: &mut Scope<'a, 'e>, budget: &Budget) -> Answer<'a> {
    let range = eval(&each.range, scope, budget)?;
    let items = items_of(&range, budget)?;
    let mut turns = Turns {
        made: Vec::new(),
        count: 0,
        failed: None,
    };
    for item in items.iter() {
        budget.work(1)?;
        scope.0.push((each.variable.as_str(), item));
        let over = turn(each, &mut turns, scope, budget);
        scope.0.pop();
        if let Some(value) = over? {
            return Ok(value);
        }
    }
    match (each.kind, turns.failed) {
        (_, Some(why)) => Err(why),
        (LoopKind::All, None) => Ok(Val::Bool(true)),
        (LoopKind::Exists, None) => Ok(Val::Bool(false)),
        (LoopKind::ExistsOne, None) => Ok(Val::Bool(turns.count == 1)),
        (LoopKind::Map, None) => Ok(Val::List(List::Made(turns.made.into()))),
    }
}

/// What the turns of a macro have given so far.
struct Turns<'a> {
    made: Vec<Val<'a>>,
    count: usize,
    /// An error, which a later turn may make void.
    failed: Option<String>,
}

/// One turn. What it gives ends the macro.
fn turn<'a, 'e: 'a>(
    each: &'e Loop,
    turns: &mut Turns<'a>,
    scope: &mut Scope<'a, 'e>,
    budget: &Budget,
) -> Result<Option<Val<'a>>, String> {
    if let Some(filter) = &each.filter {
        match eval(filter, scope, budget)? {
            Val::Bool(true) => {}
            Val::Bool(false) => return Ok(None),
            _ => return Err(no_overload()),
        }
    }
    let found = eval(&each.body, scope, budget);
    match each.kind {
        LoopKind::Map => {
            budget.elements(1)?;
            turns.made.push(found?);
        }
        LoopKind::ExistsOne => match found? {
            Val::Bool(is_so) => turns.count += usize::from(is_so),
            _ => return Err(no_overload()),
        },
        LoopKind::All | LoopKind::Exists => match found {
            Ok(Val::Bool(is_so)) if is_so == (each.kind == LoopKind::Exists) => return Ok(Some(Val::Bool(is_so))),
            Ok(Val::Bool(_)) => {}
            Ok(_) => turns.failed = Some(no_overload()),
            Err(why) => turns.failed = Some(why),
        },
    }
    // Nothing makes void that the expression is too expensive.
    budget.work(1)?;
    Ok(None)
}

/// Computes what in an expression is constant: what has wrong types there is wrong for every object.
pub(super) fn check_constants(expr: &Expr) -> Result<bool, String> {
    let all = |parts: &mut dyn Iterator<Item = &Expr>| {
        let mut constant = true;
        for part in parts {
            constant &= check_constants(part)?;
        }
        Ok::<_, String>(constant)
    };
    match expr {
        Expr::Literal(_) => Ok(true),
        Expr::Variable(_) => Ok(false),
        Expr::Select(operand, _) | Expr::Has(operand, _) => check_constants(operand).map(|_| false),
        Expr::Call(_, arguments) => {
            if !all(&mut arguments.iter())? {
                return Ok(false);
            }
            let mut scope = Scope(Vec::new());
            match eval(expr, &mut scope, &Budget::new()) {
                Err(why) if why == no_overload() => Err(why),
                result => Ok(result.is_ok()),
            }
        }
        Expr::And(left, right) | Expr::Or(left, right) => {
            all(&mut [left.as_ref(), right.as_ref()].into_iter()).map(|_| false)
        }
        Expr::Choice(parts) => all(&mut parts.iter()).map(|_| false),
        Expr::List(items) => all(&mut items.iter()),
        Expr::Map(entries) => all(&mut entries.iter().flat_map(|(key, value)| [key, value])).map(|_| false),
        Expr::Loop(each) => {
            check_constants(&each.range)?;
            each.filter.as_ref().map_or(Ok(false), check_constants)?;
            check_constants(&each.body).map(|_| false)
        }
    }
}
