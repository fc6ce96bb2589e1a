package app

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/freshbind/freshbind/internal/cli"
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

// clientVersion is named as kubectl names its own.
type clientVersion struct {
	GitVersion string `json:"gitVersion"`
	GitCommit  string `json:"gitCommit"`
	GoVersion  string `json:"goVersion"`
	Platform   string `json:"platform"`
}

func thisVersion() clientVersion {
	built := Commit()
	if built == "" {
		built = "unknown"
	}
	return clientVersion{Version(), built, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
}

func (v clientVersion) String() string {
	return fmt.Sprintf("freshbind %s commit %s %s %s", v.GitVersion, v.GitCommit, v.GoVersion, v.Platform)
}

func newVersionCommand(streams genericiooptions.IOStreams) *cobra.Command {
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print version, commit, Go version and platform",
		Example: "  freshbind version\n" +
			"  freshbind version -o jsonpath='{.clientVersion.gitVersion}'",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := output.Validate(); err != nil {
				return usage("%w", err)
			}
			if output.Structured() {
				return output.PrintObject(streams.Out, "Version", map[string]any{"clientVersion": thisVersion()})
			}
			_, err := fmt.Fprintln(streams.Out, thisVersion())
			return err
		},
	}
	output.AddFlags(cmd)
	// As with kubectl, though no other version is ever asked for.
	cmd.Flags().Bool("client", true, "Print the version of this program alone, which is what is done in any case.")
	return cmd
}
