// Package app holds freshbind's subcommands and their options.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
)

const (
	exitFailed = 1
	exitUsage  = 2
)

// ExitError is an error with an exit code of its own.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string { return e.Err.Error() }

func (e *ExitError) Unwrap() error { return e.Err }

// Main runs the command line and returns the exit code: 0 done, 1 failed, 2
// wrong usage, or what the subcommand documents.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	cmd := NewCommand(genericiooptions.IOStreams{In: in, Out: out, ErrOut: errOut})
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	_, _ = fmt.Fprintf(errOut, "error: %v\n", err)
	var exit *ExitError
	if errors.As(err, &exit) {
		return exit.Code
	}
	return exitFailed
}

// NewCommand returns the root command.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "freshbind",
		Short: "Claims on warm pools bind to fresh sandboxes only",
		Long: "Freshbind stands beside an unmodified warm-pool system, judges every bind at the API server,\n" +
			"and refuses those that would give a claim a stale, dead or used sandbox.",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	cmd.SetIn(streams.In)
	cmd.SetOut(streams.Out)
	cmd.SetErr(streams.ErrOut)
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return &ExitError{Code: exitUsage, Err: fmt.Errorf("%w (see %s --help)", err, c.CommandPath())}
	})
	cmd.AddCommand(
		newManagerCommand(),
		newWebhookConfigCommand(streams),
		newVersionCommand(streams),
		NewAuditCommand(streams),
		NewSimulateCommand(streams),
		NewHashCommand(streams, agentsandbox.RenderMember),
	)
	return cmd
}
