package app

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// version and commit are set by the linker for a release.
var version, commit = "", ""

// Version returns the release, or the commit that an unreleased build is of.
func Version() string {
	if version != "" {
		return version
	}
	if c := Commit(); len(c) >= 12 {
		return "devel-" + c[:12]
	}
	return "devel"
}

// Commit returns the commit that this is built from; "" when that is not known.
func Commit() string {
	if commit != "" {
		return commit
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return ""
}

func newVersionCommand(streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print version, commit, Go version and platform",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			built := Commit()
			if built == "" {
				built = "unknown"
			}
			_, err := fmt.Fprintf(streams.Out, "freshbind %s commit %s %s %s/%s\n", Version(), built, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
