// Browser opens a page in a headless Chromium and prints what it saw, as JSON: where the
// elements are that selectors name, which colours they should have and which the
// screen has there, what was asked for besides the page, and what the console says.
//
//	browser -chromium /usr/bin/chromium -page report.html -scheme dark h1 'svg rect'
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/chromedp/chromedp"
)

// The window is that of a laptop. The screenshot is of the whole page.
const width, height = 1280, 800

// startWithin is how long Chromium may take to start on a machine that is busy.
const startWithin = 5 * time.Minute

func main() {
	var o options
	flag.StringVar(&o.chromium, "chromium", "", "Path of Chromium.")
	flag.StringVar(&o.page, "page", "", "Path of the page.")
	flag.StringVar(&o.scheme, "scheme", "light", "What a person prefers: light or dark.")
	flag.Parse()
	o.selectors = flag.Args()
	seen, err := look(context.Background(), o)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(seen)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "browser:", err)
		os.Exit(1)
	}
}

type options struct {
	chromium, page, scheme string
	selectors              []string
}

// view is what was seen.
type view struct {
	Browser string
	// Width is that of what can be scrolled, in pixels.
	Width int
	// Requests are the addresses that were asked for, but the page's own.
	Requests []string
	// Console is what the page printed, and what the browser has against it.
	Console []string
	// Elements are those of each selector, as they come in the page.
	Elements map[string][]element
}

// element has its place in the page, in pixels.
type element struct {
	Class, Text         string
	X, Y, Width, Height float64
	// What the style says, as rgb(r, g, b).
	Fill, Stroke, Color string
	// Pixel is the colour in its middle.
	Pixel string
}

func look(ctx context.Context, o options) (*view, error) {
	ctx, stopListening := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stopListening()
	path, err := filepath.Abs(o.page)
	if err != nil {
		return nil, fmt.Errorf("find the page: %w", err)
	}
	flags := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(o.chromium), chromedp.WindowSize(width, height),
		chromedp.WSURLReadTimeout(startWithin))
	if os.Geteuid() == 0 {
		// Chromium refuses to start as root with its sandbox.
		flags = append(flags, chromedp.NoSandbox)
	}
	ctx, stop := chromedp.NewExecAllocator(ctx, flags...)
	defer stop()
	ctx, closePage := chromedp.NewContext(ctx)
	defer closePage()
	heard := &heard{page: "file://" + filepath.ToSlash(path)}
	if err := chromedp.Listen(ctx, heard.event); err != nil {
		return nil, fmt.Errorf("start %s: %w", o.chromium, err)
	}
	seen, err := chromedp.Run(ctx, func(ctx context.Context, t *chromedp.Target) (*view, error) {
		return see(ctx, t, heard.page, o)
	})
	if err != nil {
		return nil, fmt.Errorf("open %s in %s: %w", o.page, o.chromium, err)
	}
	seen.Requests, seen.Console = heard.said()
	return seen, nil
}
