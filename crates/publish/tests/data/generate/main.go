// Prints what the Go agent makes of PublishedResources, as rows of the tables beside this folder. It uses packages that are
// internal to the agent: put it into a checkout of api-syncagent as cmd/tables and run it there.
//
//	go run ./cmd/tables schemas <schemas.yaml >../schemas.jsonl
//	go run ./cmd/tables builtins <openapi.yaml >../builtins.jsonl
//	go run ./cmd/tables names <names.yaml >../names.jsonl
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/kcp-dev/api-syncagent/internal/kcp"
	"github.com/kcp-dev/api-syncagent/internal/projection"
	"github.com/kcp-dev/api-syncagent/internal/sync/templating"
	syncagentv1alpha1 "github.com/kcp-dev/api-syncagent/sdk/apis/syncagent/v1alpha1"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"github.com/kcp-dev/logicalcluster/v3"
	"github.com/kcp-dev/virtual-workspace-framework/crdpuller"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/kube-openapi/pkg/util/proto"
	"sigs.k8s.io/yaml"
)

// Types, and what is published of them.
type schemas struct {
	CRDs  map[string]apiextensionsv1.CustomResourceDefinition `json:"crds"`
	Cases []struct {
		CRD  string                                  `json:"crd"`
		Spec syncagentv1alpha1.PublishedResourceSpec `json:"spec"`
	} `json:"cases"`
}

func (all schemas) each(print func(any, error)) {
	for _, it := range all.Cases {
		crd := all.CRDs[it.CRD]
		print(schema(crd, it.Spec))
	}
}

func schema(crd apiextensionsv1.CustomResourceDefinition, spec syncagentv1alpha1.PublishedResourceSpec) (any, error) {
	// As the agent's discovery leaves a CRD of the service cluster.
	crd.ObjectMeta = metav1.ObjectMeta{Name: crd.Name, Generation: crd.Generation}
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	projected, err := projection.ProjectCRD(&crd, &syncagentv1alpha1.PublishedResource{Spec: spec})
	if err != nil {
		return nil, err
	}
	return kcp.CreateAPIResourceSchema(projected, kcp.GetAPIResourceSchemaName(projected), "agent")
}

// Objects, and how their copies are to be called.
type names struct {
	Objects map[string]json.RawMessage `json:"objects"`
	Cases   []struct {
		Object string                           `json:"object"`
		Naming syncagentv1alpha1.ResourceNaming `json:"naming"`
	} `json:"cases"`
}

func (all names) each(print func(any, error)) {
	for _, it := range all.Cases {
		resource := &syncagentv1alpha1.PublishedResource{}
		resource.Spec.Naming = &it.Naming
		object := &unstructured.Unstructured{}
		// As a client reads objects: whole numbers are no floats.
		if err := utiljson.Unmarshal(all.Objects[it.Object], &object.Object); err != nil {
			panic(err)
		}
		path := logicalcluster.NewPath("root:org:team")
		found, err := templating.GenerateLocalObjectName(resource, object, "2abc", path)
		print(found.Namespace+"/"+found.Name, err)
	}
}

// A document of OpenAPI. All of its schemas that are a kind are printed.
type builtins struct {
	document map[string]any
}

func (it *builtins) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &it.document)
}

func (it builtins) each(print func(any, error)) {
	data, _ := json.Marshal(it.document)
	document, err := openapi_v2.ParseDocument(data)
	if err != nil {
		panic(err)
	}
	models, err := proto.NewOpenAPIData(document)
	if err != nil {
		panic(err)
	}
	for _, name := range models.ListModels() {
		if models.LookupModel(name).GetExtensions()["x-kubernetes-group-version-kind"] == nil {
			continue
		}
		var found apiextensionsv1.JSONSchemaProps
		if errs := crdpuller.Convert(models.LookupModel(name), &found); len(errs) > 0 {
			print(nil, errs[0])
		} else {
			print(map[string]any{"model": name, "schema": found}, nil)
		}
	}
}

func read[T interface{ each(func(any, error)) }](data []byte) T {
	var all T
	if err := yaml.UnmarshalStrict(data, &all); err != nil {
		panic(err)
	}
	return all
}

func main() {
	data, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	var all interface{ each(func(any, error)) }
	switch os.Args[1] {
	case "schemas":
		all = read[schemas](data)
	case "names":
		all = read[names](data)
	default:
		all = read[builtins](data)
	}
	all.each(func(found any, err error) {
		if err != nil {
			found = map[string]string{"error": strings.ReplaceAll(err.Error(), "\n", " ")}
		}
		printed, _ := json.Marshal(found)
		fmt.Println(string(printed))
	})
}
