package app

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/freshbind/freshbind/internal/cli"
)

// settleFor is how long a watch waits for more after a change: claims and
// controllers write in bursts.
const settleFor = 250 * time.Millisecond

// listing are the options of a command that lists rows of T.
type listing[T any] struct {
	*target
	output cli.Output
	watch  bool

	// kind is that of a row for programs.
	kind    string
	name    func(T) string
	columns func(namespaces, wide bool, now func() time.Time) []cli.Column[T]
	// rows are those of the pools that were found.
	rows func([]cli.Pool) []T
	// labels are what -l selects rows by; nil where it selects pools.
	labels func(T) labels.Set
	// key tells rows apart in a watch.
	key    func(T) string
	footer bool
}

func (l *listing[T]) addFlags(cmd *cobra.Command) {
	l.addListFlags(cmd)
	if l.labels != nil {
		cmd.Flags().Lookup("selector").Usage = "Label selector of members."
	}
	l.output.Tables, l.output.Names = true, true
	l.output.AddFlags(cmd)
	cmd.Flags().BoolVarP(&l.watch, "watch", "w", false, "After the list, print what changes, until Ctrl-C.")
}

func newStatusCommand(r env) *cobra.Command {
	l := &listing[cli.Pool]{
		target: newTarget(r), kind: "PoolStatus", name: cli.PoolName, columns: cli.PoolColumns, footer: true,
		rows: func(p []cli.Pool) []cli.Pool { return p },
		key:  func(p cli.Pool) string { return p.Namespace + "/" + p.Name },
	}
	cmd := &cobra.Command{
		Use:   "status [POOL]",
		Short: "Show how current the members of pools are",
		Long: "Status compares each pool's idle members, by content, with the template in force. It only reads, and works in mode\n" +
			"audit and without Freshbind in the cluster. STATE and SINCE come from the controller if it has reported them.\n\n" +
			"READY counts all ready members, hidden ones as well; CLAIMABLE only those that a new claim could get.\n\n" +
			exitCodes,
		Example: "  freshbind status\n" +
			"  freshbind status -A -o wide\n" +
			"  freshbind status python -n prod -w",
		Args:              atMost(1, "the name of one pool"),
		ValidArgsFunction: l.completeNames(poolKind),
		RunE:              l.run,
	}
	l.addFlags(cmd)
	return cmd
}

func newGetCommand(r env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "get", Short: "List members of pools", Args: cobra.ArbitraryArgs, RunE: needsSubcommand, FParseErrWhitelist: anyFlags,
	}
	l := &listing[cli.Member]{
		target: newTarget(r), kind: "MemberStatus", name: cli.MemberName, columns: cli.MemberColumns,
		rows: membersOf, labels: func(m cli.Member) labels.Set { return m.Labels },
		key: func(m cli.Member) string { return m.Namespace + "/" + m.Name },
	}
	list := &cobra.Command{
		Use:     "members [POOL]",
		Aliases: []string{"member"},
		Short:   "List the idle members of pools, and what each was built from",
		Long: "Members lists idle members, the oldest first, and judges each by its content. It only reads. For a judgement that\n" +
			"includes the Pod, and the reason, use explain member.\n\n" + exitCodes,
		Example: "  freshbind get members python -n prod\n" +
			"  freshbind get members -A -o wide\n" +
			"  freshbind get members -o json | jq '.items[] | select(.class == \"Stale\").name'",
		Args:              atMost(1, "the name of one pool"),
		ValidArgsFunction: l.completeNames(poolKind),
		RunE:              l.run,
	}
	l.addFlags(list)
	cmd.AddCommand(list)
	return cmd
}

func membersOf(found []cli.Pool) []cli.Member {
	var out []cli.Member
	for i := range found {
		out = append(out, found[i].Members...)
	}
	return out
}

func (l *listing[T]) run(cmd *cobra.Command, args []string) error {
	if err := l.output.Validate(); err != nil {
		return usage("%w", err)
	}
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	if name != "" && (l.all || l.selector != "" && l.labels == nil) {
		return usage("a pool by name and -A or -l exclude each other")
	}
	which, err := l.selection(name)
	if err != nil {
		return err
	}
	l.choose(&which)
	c, namespace, err := l.reachCluster()
	if err != nil {
		return err
	}
	return l.list(cmd.Context(), c, namespace, which)
}

// choose has -l select rows where those are not pools.
func (l *listing[T]) choose(which *cli.Selection) {
	if l.labels == nil {
		return
	}
	selector, rows := which.Labels, l.rows
	which.Labels = nil
	l.rows = func(found []cli.Pool) []T {
		return slices.DeleteFunc(rows(found), func(row T) bool { return !selector.Matches(l.labels(row)) })
	}
}

func (l *listing[T]) list(ctx context.Context, c *cli.Cluster, namespace string, which cli.Selection) error {
	store, err := c.Load(ctx, namespace)
	if err != nil {
		return err
	}
	judge := c.Judge(store)
	found, err := judge.Pools(ctx, which)
	if err != nil {
		return err
	}
	if which.Name != "" && len(found) == 0 {
		return fmt.Errorf("pool %q does not exist in namespace %q", which.Name, namespace)
	}
	l.output.Colour = cli.Colours(l.streams.Out)
	printer := cli.NewPrinter(l.output, l.kind, l.name, l.columns(l.all, l.output.Format == cli.Wide, c.Now))
	rows := l.rows(found)
	if !l.watch {
		print := printer.Print
		// One pool by its name is an object, not a list of one.
		if _, pools := any(rows).([]cli.Pool); pools && which.Name != "" {
			print = printer.PrintEach
		}
		if err := print(l.streams.Out, rows); err != nil {
			return err
		}
		return l.end(ctx, c, namespace, len(rows))
	}
	if err := printer.PrintEach(l.streams.Out, rows); err != nil {
		return err
	}
	return l.follow(ctx, store, func() error {
		found, err := judge.Pools(ctx, which)
		if err != nil {
			return err
		}
		now := l.rows(found)
		news, err := l.news(rows, now)
		rows = now
		if err != nil || len(news) == 0 {
			return err
		}
		return printer.PrintEach(l.streams.Out, news)
	})
}

// end says what a table cannot.
func (l *listing[T]) end(ctx context.Context, c *cli.Cluster, namespace string, rows int) error {
	if l.output.Machine() {
		return nil
	}
	if rows == 0 {
		where := fmt.Sprintf("in namespace %q", namespace)
		if namespace == "" {
			where = "in any namespace"
		}
		_, err := fmt.Fprintf(l.streams.ErrOut, "Nothing found %s.\n", where)
		return err
	}
	if !l.footer || l.output.NoHeaders {
		return nil
	}
	footer, err := c.Footer(ctx, namespace)
	if err == nil && footer != "" {
		_, err = fmt.Fprintln(l.streams.Out, footer)
	}
	return err
}

// follow calls look after each burst of changes, until ctx ends.
func (l *listing[T]) follow(ctx context.Context, store *cli.Store, look func() error) error {
	store.Follow(ctx, func(err error) { _, _ = fmt.Fprintf(l.streams.ErrOut, "%v (trying again)\n", err) })
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-store.Changed():
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(settleFor):
		}
		if err := look(); err != nil {
			return err
		}
	}
}

// news returns the rows that are not as they were. Rows that went are not told.
func (l *listing[T]) news(before, now []T) ([]T, error) {
	known := map[string]string{}
	for _, row := range before {
		raw, err := json.Marshal(row)
		if err != nil {
			return nil, fmt.Errorf("compare rows: %w", err)
		}
		known[l.key(row)] = string(raw)
	}
	var out []T
	for _, row := range now {
		raw, err := json.Marshal(row)
		if err != nil {
			return nil, fmt.Errorf("compare rows: %w", err)
		}
		if known[l.key(row)] != string(raw) {
			out = append(out, row)
		}
	}
	return out, nil
}
