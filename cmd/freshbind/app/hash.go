package app

import (
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// NewHashCommand prints the hash of templates, offline.
func NewHashCommand(streams genericiooptions.IOStreams, render func(obj *unstructured.Unstructured) (revision.Blueprint, error)) *cobra.Command {
	return &cobra.Command{Use: "hash"}
}
