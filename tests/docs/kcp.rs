//! The types for kcp, against the CRDs for other hubs.

use serde_json::{Value, json};

use crate::pages::{files, read};
use crate::support::manifests::documents;

#[test]
fn the_schemas_for_kcp_are_those_of_the_crds() {
    let schemas = documents(&read("manifests/kcp/apiresourceschemas.yaml"));
    let crds: Vec<Value> = files("manifests/crds", ".yaml")
        .iter()
        .map(|path| documents(&read(path)).remove(0))
        .collect();
    assert_eq!((schemas.len(), crds.len()), (3, 3));
    for (schema, crd) in schemas.iter().zip(&crds) {
        let mut versions = crd["spec"]["versions"].clone();
        for version in versions.as_array_mut().expect("they are a list") {
            let inner = version["schema"]["openAPIV3Schema"].take();
            assert!(inner.is_object());
            // A CRD wraps it, a schema of kcp does not.
            version["schema"] = inner;
        }
        let spec = &crd["spec"];
        assert_eq!(
            schema["spec"],
            json!({"group": spec["group"], "names": spec["names"], "scope": spec["scope"], "versions": versions})
        );
        let name = crd["metadata"]["name"].as_str().expect("it has a name");
        let expected = match name {
            "edges.edge.kubestellar.io" => format!("v2alpha1-1.{name}"),
            _ => format!("v2alpha1-3.{name}"),
        };
        assert_eq!(schema["metadata"]["name"], expected.as_str());
        let version = &schema["spec"]["versions"][0];
        assert_eq!(version["subresources"], json!({"status": {}}));
        assert!(version["additionalPrinterColumns"].is_array());
    }
    let export = documents(&read("manifests/kcp/apiexport.yaml")).remove(0);
    let names: Vec<&Value> = schemas.iter().map(|schema| &schema["metadata"]["name"]).collect();
    assert_eq!(export["spec"]["latestResourceSchemas"], json!(names));
    let binding = documents(&read("manifests/kcp/apibinding.yaml")).remove(0);
    assert_eq!(
        binding["spec"]["reference"]["export"]["name"],
        export["metadata"]["name"]
    );
}
