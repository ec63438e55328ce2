//! Asking the hub what it is and what defines its types.

use kube_lite::{Cluster, Error, ResourceType};

use crate::model::effect::TypeDefinitionAnswers;
use crate::sync::definition::{TypeDefinitions, ask_hub};

/// Asks for what is not known of the hub, and then for each of these types.
pub(super) async fn read(hub: &Cluster, types: Vec<ResourceType>, mut known: TypeDefinitions) -> TypeDefinitionAnswers {
    let asked = if known.knows_hub() {
        Ok(None)
    } else {
        ask_hub(hub).await
    };
    let found = match asked {
        Ok(found) => found,
        Err(error) => return all_failed(types, &error),
    };
    if let Some(found) = &found {
        known.set_hub(found.clone());
    }
    let mut answers = Vec::new();
    for resource in types {
        let answer = known.learn(hub, &resource).await;
        answers.push((resource, answer));
    }
    TypeDefinitionAnswers {
        hub: found,
        types: answers,
    }
}

fn all_failed(types: Vec<ResourceType>, error: &Error) -> TypeDefinitionAnswers {
    let types = types.into_iter().map(|resource| (resource, Err(error.clone())));
    TypeDefinitionAnswers {
        hub: None,
        types: types.collect(),
    }
}
