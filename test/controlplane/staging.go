package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// stagingVersions are the versions of modules of Kubernetes' folder staging, by
// path: the wanted one or, where no proxy has that, the patch before it. log is told.
func stagingVersions(ctx context.Context, log io.Writer, dir, wanted string, modules []string) (map[string]string, error) {
	found := map[string]string{}
	for _, module := range modules {
		got, err := availableVersion(ctx, dir, module, wanted)
		if err != nil {
			return nil, err
		}
		if got != wanted {
			say(log, "no proxy has %s %s: taking %s", module, wanted, got)
		}
		found[module] = got
	}
	return found, nil
}

// availableVersion is the version of a module that is wanted or, if no proxy lists that,
// the newest patch before it that can be downloaded. Without any it stays the wanted
// one: the programs may not need the module, and the go command says so if they do.
func availableVersion(ctx context.Context, dir, module, wanted string) (string, error) {
	_, err := goCommand(ctx, dir, "mod", "download", module+"@"+wanted)
	if err == nil {
		return wanted, nil
	}
	list, listErr := goCommand(ctx, dir, "list", "-m", "-versions", "-f", `{{join .Versions " "}}`, module)
	if listErr != nil {
		return "", errors.Join(err, listErr)
	}
	versions := strings.Fields(list)
	// What is listed and does not come now may come the next time.
	if slices.Contains(versions, wanted) {
		return "", err
	}
	older, versionErr := patchesBefore(wanted, versions)
	if versionErr != nil {
		return "", versionErr
	}
	for _, v := range older {
		if _, olderErr := goCommand(ctx, dir, "mod", "download", module+"@"+v); olderErr == nil {
			return v, nil
		}
	}
	return wanted, nil
}

// patchesBefore are those versions that are the same but for an older patch, the
// newest first.
func patchesBefore(wanted string, versions []string) ([]string, error) {
	limit, err := version.ParseSemantic(wanted)
	if err != nil {
		return nil, fmt.Errorf("read version: %w", err)
	}
	var older []*version.Version
	for _, text := range versions {
		v, err := version.ParseSemantic(text)
		if err != nil {
			return nil, fmt.Errorf("read version: %w", err)
		}
		if v.Major() == limit.Major() && v.Minor() == limit.Minor() && v.LessThan(limit) && v.PreRelease() == "" {
			older = append(older, v)
		}
	}
	slices.SortFunc(older, func(a, b *version.Version) int {
		if a.LessThan(b) {
			return 1
		}
		return -1
	})
	var names []string
	for _, v := range older {
		names = append(names, "v"+v.String())
	}
	return names, nil
}
