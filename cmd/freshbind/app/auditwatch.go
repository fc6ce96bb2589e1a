package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/internal/recorder"
)

const (
	// auditTick is how often new binds are looked at.
	auditTick = 500 * time.Millisecond
	// auditGrace is how long a bind waits for the other watches before it is reported: one that has nothing to say stays silent
	// for up to a minute. What arrives later still counts in the end, and is reported as a correction.
	auditGrace = 2 * time.Second
	// auditEnd bounds the wait for the last events at the end.
	auditEnd = 5 * time.Second
	// auditKeep is how long what is over is kept, and how often it is looked for.
	auditKeep = 5 * time.Minute
)

type auditWatchOptions struct {
	streams  genericiooptions.IOStreams
	config   *genericclioptions.ConfigFlags
	all      bool
	platform string
	duration time.Duration
	output   cli.Output
	record   string
	file     string
}

func newAuditWatchCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &auditWatchOptions{streams: streams, config: genericclioptions.NewConfigFlags(true), output: cli.Output{Tables: true}}
	cmd := &cobra.Command{
		Use:   "watch [-n NAMESPACE | -A]",
		Short: "Watch a cluster and name each bind that was not fresh",
		Long: "Watch names each bind that was not fresh as it happens, and counts all of them per namespace at the end\n" +
			"(Ctrl-C, or --duration). It cannot judge what happened before it started.\n\n" +
			"Exit codes: 0 nothing bad was found, 1 something stale or worse was found or the watch failed, 2 wrong usage.",
		Example: "  freshbind audit watch -A\n" +
			"  freshbind audit watch -n prod --duration 10m -o json\n" +
			"  freshbind audit watch -A --record today.jsonl; freshbind audit check -f today.jsonl",
		Args: auditNoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	o.config.AddFlags(cmd.Flags())
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "Watch all namespaces.")
	cmd.Flags().StringVar(&o.platform, "platform", "", platformUsage("watch"))
	cmd.Flags().DurationVar(&o.duration, "duration", 0, "Stop after this long; 0 means at Ctrl-C.")
	o.output.AddFlags(cmd)
	cmd.Flags().StringVar(&o.file, "config", "", auditConfigUsage)
	cmd.Flags().StringVar(&o.record, "record", "",
		"Also write every event to this new file, for audit check. It holds whole objects, with the values of their env.")
	return cmd
}

func (o *auditWatchOptions) validate() error {
	if o.duration < 0 {
		return auditUsage("--duration %s: it must not be negative; 0 means until Ctrl-C", o.duration)
	}
	if err := checkPlatform(o.platform); err != nil {
		return err
	}
	return auditCheckOutput(&o.output)
}

func (o *auditWatchOptions) namespace() (string, error) {
	if o.all {
		return "", nil
	}
	namespace, _, err := o.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("read kubeconfig: %w", err)
	}
	return namespace, nil
}

func (o *auditWatchOptions) run(ctx context.Context) (err error) {
	namespace, err := o.namespace()
	if err != nil {
		return err
	}
	config, err := o.config.ToRESTConfig()
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	judgement, err := auditOptions(o.file)
	if err != nil {
		return err
	}
	options := recorder.Options{Namespace: namespace, Platform: o.platform, Audit: judgement}
	if o.record != "" {
		file, err := newAuditFile(o.record)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		options.Sink = file
	}
	report, err := o.watch(ctx, config, options)
	if err != nil {
		return err
	}
	if err := printAuditReport(o.streams.Out, &o.output, report); err != nil {
		return err
	}
	return auditResult(report)
}

// watch records until ctx or the duration ends, and returns the judgement of all of it.
func (o *auditWatchOptions) watch(ctx context.Context, config *rest.Config, options recorder.Options) (*checker.Report, error) {
	// The recorder outlives ctx: at the end it is asked for the events that are still on their way.
	recording, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	rec, err := recorder.New(ctx, config, options)
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- rec.Run(recording) }()
	if err := rec.WaitForSync(ctx); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	if o.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.duration)
		defer cancel()
	}
	talk := &auditReporter{out: auditTalk(o.streams, &o.output), reported: map[auditBindKey]checker.Class{}}
	if err := talk.start(rec, options.Namespace); err != nil {
		return nil, err
	}
	if err := talk.follow(ctx, rec, ended); err != nil {
		return nil, err
	}
	last, cancel := context.WithTimeout(recording, auditEnd)
	defer cancel()
	if err := rec.CatchUp(last); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("fetch the last events: %w", err)
	}
	report := rec.Report()
	return report, talk.finish(rec, report)
}

type auditBindKey struct {
	claim, sandbox string
	rv             checker.RV
}

// auditReporter writes binds that are not fresh as they are found.
type auditReporter struct {
	out      io.Writer
	reported map[auditBindKey]checker.Class
}

func (t *auditReporter) start(rec *recorder.Recorder, namespace string) error {
	where := "all namespaces"
	if namespace != "" {
		where = "namespace " + namespace
	}
	report := rec.Report()
	bound := 0
	for _, s := range report.Namespaces {
		bound += s.BoundBefore
	}
	_, err := fmt.Fprintf(t.out, "Watching %s since %s (resourceVersion %s, %s %s). %s\n", where,
		report.Until.Local().Format(time.TimeOnly), report.SinceRV, rec.Platform(), rec.API()[checker.Sandboxes].Version, auditBoundBefore(bound))
	return err
}

func auditBoundBefore(n int) string {
	switch n {
	case 0:
		return "No sandbox has a claim yet."
	case 1:
		return "1 sandbox had its claim before; how it was bound is not known."
	}
	return fmt.Sprintf("%d sandboxes had their claims before; how they were bound is not known.", n)
}

// follow reports until ctx ends or the recording does.
func (t *auditReporter) follow(ctx context.Context, rec *recorder.Recorder, ended <-chan error) error {
	tick := time.NewTicker(auditTick)
	defer tick.Stop()
	prune := time.NewTicker(auditKeep)
	defer prune.Stop()
	var over checker.RV
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			return fmt.Errorf("record: %w", err)
		case now := <-tick.C:
			if err := t.report(rec, now.Add(-auditGrace)); err != nil {
				return err
			}
		case <-prune.C:
			rec.View(func(h *checker.History) {
				if over != "" {
					h.Prune(over)
				}
				over = h.Watermark()
			})
		}
	}
}

func (t *auditReporter) report(rec *recorder.Recorder, deadline time.Time) error {
	var found []checker.Bind
	rec.View(func(h *checker.History) { found = h.Take(deadline) })
	for _, b := range found {
		if b.Unsettled {
			t.reported[auditKeyOf(b)] = b.Class
		}
		if b.Class == checker.Fresh {
			continue
		}
		if _, err := fmt.Fprintln(t.out, cli.OneLine(b.String())); err != nil {
			return fmt.Errorf("write output: %w", err)
		}
	}
	return nil
}

// finish reports what was not reported yet, and corrects what turned out otherwise.
func (t *auditReporter) finish(rec *recorder.Recorder, report *checker.Report) error {
	earlier := t.reported
	t.reported = map[auditBindKey]checker.Class{}
	if err := t.report(rec, report.Until.Add(time.Hour)); err != nil {
		return err
	}
	for _, b := range report.Binds {
		class, reported := earlier[auditKeyOf(b)]
		if !reported || class == b.Class {
			continue
		}
		if _, err := fmt.Fprintf(t.out, "Corrected: it was reported as %s before late events arrived:\n%s\n", class, cli.OneLine(b.String())); err != nil {
			return fmt.Errorf("write output: %w", err)
		}
	}
	return nil
}

func auditKeyOf(b checker.Bind) auditBindKey {
	return auditBindKey{string(b.Claim.UID), string(b.Sandbox.UID), b.RV}
}
