package app

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/internal/revision"
)

var (
	templateKind = builtIn.Kinds().Template.GroupKind
	sandboxKind  = builtIn.Kinds().Member.GroupKind
)

type hashOptions struct {
	streams genericiooptions.IOStreams
	render  func(template *unstructured.Unstructured) (revision.Blueprint, error)
	config  *genericclioptions.ConfigFlags
	files   documentFiles
	output  cli.Output
	// stored: hash what a cluster would store of the files.
	stored bool
	// crds are files with the schemas that a cluster would have.
	crds []string
	// schemas are the cluster's, or those of crds; nil without both.
	schemas *crdDefaults
}

// hashedObject is one line of output.
type hashedObject struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Hash      string `json:"hash"`
}

// NewHashCommand returns the command that prints template-spec-hashes without a cluster. render returns what the platform builds a pool
// member of a template from.
func NewHashCommand(streams genericiooptions.IOStreams, render func(template *unstructured.Unstructured) (revision.Blueprint, error)) *cobra.Command {
	o := &hashOptions{streams: streams, render: render, config: genericclioptions.NewConfigFlags(true)}
	cmd := &cobra.Command{
		Use:   "hash -f FILE",
		Short: "Print the template-spec-hash of templates and sandboxes",
		Long: "Print the template-spec-hash of each SandboxTemplate and Sandbox in the files, without a cluster unless you ask for one.\n\n" +
			"A SandboxTemplate has the hash of the members that a pool makes from it, with what the platform adds. A Sandbox has\n" +
			"the hash of its own content. So if the hashes are equal, the sandbox is what the template asks for.\n\n" +
			"Fields with a default in the CRD have it only in what the API server stored. --stored sets the defaults that the\n" +
			"cluster's CRDs have, so that the hash of a file is the one that the cluster shows after kubectl apply. --crds reads\n" +
			"those defaults from a manifest of the platform's release, without a cluster. Both refuse fields that the CRDs do not\n" +
			"have, and write nothing.",
		Example: "  freshbind hash -f template.yaml\n" +
			"  freshbind hash --stored -f template.yaml -o name\n" +
			"  freshbind hash --crds agent-sandbox.yaml -f template.yaml -o name\n" +
			"  kubectl get sandboxtemplates,sandboxes -A -o yaml | freshbind hash -f -\n" +
			"  test \"$(freshbind hash -f old.yaml -o name)\" = \"$(freshbind hash -f new.yaml -o name)\" || echo pools will be rebuilt",
		RunE: func(_ *cobra.Command, args []string) error {
			if err := o.validate(args); err != nil {
				return &ExitError{Code: exitUsage, Err: err}
			}
			return o.run()
		},
	}
	o.files.addFlag(cmd.Flags())
	cmd.Flags().BoolVar(&o.stored, "stored", false, "Hash what the cluster would store of the files, with the defaults of its CRDs.")
	cmd.Flags().StringArrayVar(&o.crds, "crds", nil, "File with CustomResourceDefinitions, whose defaults to set as --stored does. Can be given several times.")
	o.config.AddFlags(cmd.Flags())
	o.output.Names = true // the hashes alone
	o.output.AddFlags(cmd)
	return cmd
}

func (o *hashOptions) validate(args []string) error {
	if err := validateFiles(args, o.files); err != nil {
		return err
	}
	switch {
	case slices.Contains(o.crds, ""), slices.Contains(o.crds, "-"):
		return errors.New("--crds: must be the name of a file")
	case o.stored && len(o.crds) > 0:
		return errors.New("--stored and --crds: the defaults come from the cluster or from files; use one of them")
	}
	return o.output.Validate()
}

// run prints nothing unless every document has a hash, so that a script never takes a part for the whole.
func (o *hashOptions) run() error {
	if err := o.connect(); err != nil {
		return err
	}
	var hashed []hashedObject
	var errs []error
	for _, file := range o.files {
		objects, err := o.hashFile(file)
		hashed = append(hashed, objects...)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return o.print(hashed)
}

// connect finds the schemas that count: those of files, or of the cluster, which it asks nothing yet.
func (o *hashOptions) connect() (err error) {
	switch {
	case o.schemas != nil:
		return nil
	case len(o.crds) > 0:
		o.schemas, err = fileDefaults(o.crds)
		return err
	case !o.stored:
		return nil
	}
	cfg, err := o.config.ToRESTConfig()
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	o.schemas, err = newCRDDefaults(cfg)
	return err
}

// asStored makes of an object what the API server would store.
func (o *hashOptions) asStored(object *unstructured.Unstructured) error {
	if o.schemas == nil {
		return nil
	}
	unknown, err := o.schemas.unknownFields(object)
	if err != nil {
		return err
	}
	if len(unknown) > 0 {
		return errors.New(strings.Join(unknown, ", "))
	}
	return o.schemas.apply(object)
}

func (o *hashOptions) hashFile(file string) ([]hashedObject, error) {
	source, documents, err := readDocuments(o.streams.In, file)
	if err != nil {
		return nil, err
	}
	if len(documents) == 0 {
		return nil, fmt.Errorf("%s: no document found: accepted are %s and %s", source, templateKind.Kind, sandboxKind.Kind)
	}
	var hashed []hashedObject
	var errs []error
	for _, d := range documents {
		h, err := o.hash(d.object)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", d.position, err))
			continue
		}
		hashed = append(hashed, h)
	}
	return hashed, errors.Join(errs...)
}

func (o *hashOptions) hash(object *unstructured.Unstructured) (hashedObject, error) {
	var b revision.Blueprint
	var err error
	of := map[schema.GroupKind]func(*unstructured.Unstructured) (revision.Blueprint, error){templateKind: o.render, sandboxKind: ofSandbox}[object.GroupVersionKind().GroupKind()]
	if of == nil {
		return hashedObject{}, fmt.Errorf("kind %q of apiVersion %q: accepted are %s of %s and %s of %s",
			object.GetKind(), object.GetAPIVersion(), templateKind.Kind, templateKind.Group, sandboxKind.Kind, sandboxKind.Group)
	}
	if err = o.asStored(object); err == nil {
		b, err = of(object)
	}
	if err != nil {
		return hashedObject{}, fmt.Errorf("%s %q: %w", object.GetKind(), object.GetName(), err)
	}
	return hashedObject{object.GetKind(), object.GetNamespace(), object.GetName(), b.Hash()}, nil
}

func ofSandbox(sandbox *unstructured.Unstructured) (revision.Blueprint, error) {
	spec, ok := sandbox.Object["spec"].(map[string]any)
	if !ok {
		return revision.Blueprint{}, errors.New("spec: required, and must be an object")
	}
	podTemplate, _ := spec["podTemplate"].(map[string]any)
	if _, ok := podTemplate["spec"].(map[string]any); !ok {
		return revision.Blueprint{}, errors.New("spec.podTemplate.spec: required, and must be an object")
	}
	return revision.FromSpec(spec)
}

func (o *hashOptions) print(hashed []hashedObject) error {
	switch {
	case o.output.Structured():
		return o.output.PrintObject(o.streams.Out, "TemplateSpecHashList", map[string]any{"items": hashed})
	case o.output.Format == cli.Name:
		for _, h := range hashed {
			if _, err := fmt.Fprintln(o.streams.Out, h.Hash); err != nil {
				return err
			}
		}
		return nil
	}
	w := tabwriter.NewWriter(o.streams.Out, 0, 0, 2, ' ', 0)
	for _, h := range hashed {
		if _, err := fmt.Fprintf(w, "%s\t%s\n", h.title(), h.Hash); err != nil {
			return err
		}
	}
	return w.Flush()
}

func (h hashedObject) title() string {
	name := h.Name
	if name == "" {
		name = "<unnamed>"
	}
	if h.Namespace != "" {
		name = h.Namespace + "/" + name
	}
	return h.Kind + "/" + name
}
