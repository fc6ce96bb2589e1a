package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is shipped may be. A module that one platform needs is among it, and one that
// only tests need is not.
func TestEveryModuleMayBeShipped(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	for part, want := range map[string]bool{
		"k8s.io/client-go v":                    true,
		"github.com/inconshreveable/mousetrap ": true, // of Windows
		"github.com/google/go-cmp ":             false,
		"github.com/freshbind/freshbind":        false,
	} {
		if got := strings.Contains(out.String(), part); got != want {
			t.Errorf("%q is listed: %t, want %t:\n%s", part, got, want, out.String())
		}
	}
}

// A release is for no platform that nobody looked at.
func TestPlatformsAreThoseOfARelease(t *testing.T) {
	source, err := os.ReadFile("../release/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(source), `"plugin-platforms", "`+platforms+`"`) {
		t.Errorf("hack/release makes plugins for other platforms than %s", platforms)
	}
	for _, p := range []string{"linux/amd64", "linux/arm64"} {
		if !slices.Contains(strings.Split(platforms, ","), p) {
			t.Errorf("no license is looked at for the image of %s", p)
		}
	}
}

const (
	mit = `Copyright (c) 2026 Somebody

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
`
	isc = `Copyright (c) 2026 Somebody Else

Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted, provided that the above copyright notice and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
`
	gpl = `This program is free software: you can redistribute it and/or modify it under the terms of the GNU General Public License as published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version.

This program is distributed in the hope that it will be useful, but WITHOUT ANY WARRANTY; without even the implied warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE. See the GNU General Public License for more details.

You should have received a copy of the GNU General Public License along with this program. If not, see <https://www.gnu.org/licenses/>.
`
	// What somebody may add to a license that is known.
	noTrade = `
The software shall not be sold, rented or leased, nor offered to anybody as a service, and nobody may use it at work without asking its author for a permission in writing.
`
)

func TestLicenses(t *testing.T) {
	cases := map[string]struct {
		files map[string]string
		want  string
		// refused are parts of the error.
		refused []string
	}{
		"one":                          {files: map[string]string{"LICENSE": mit}, want: "MIT"},
		"by its own name":              {files: map[string]string{"LICENSE.MIT": mit}, want: "MIT"},
		"by another name":              {files: map[string]string{"Copying.md": mit}, want: "MIT"},
		"two files":                    {files: map[string]string{"LICENSE-ISC": isc, "LICENSE-MIT": mit}, want: "ISC MIT"},
		"two in one file":              {files: map[string]string{"LICENSE": isc + mit}, want: "ISC MIT"},
		"a part's own":                 {files: map[string]string{"LICENSE": mit, "a/LICENSE": isc}, want: "ISC MIT"},
		"source about licenses":        {files: map[string]string{"LICENSE": mit, "license.go": "package license"}, want: "MIT"},
		"of what is not shipped":       {files: map[string]string{"LICENSE": mit, "c/LICENSE": gpl}, want: "MIT"},
		"none":                         {files: map[string]string{"README": mit}, refused: []string{"module example.com/m v1.2.3", "no file with a license"}},
		"of a part only":               {files: map[string]string{"a/LICENSE": mit}, refused: []string{"no file with a license"}},
		"one that may not be":          {files: map[string]string{"LICENSE": gpl}, refused: []string{"module example.com/m v1.2.3", "/LICENSE: GPL-3.0", "may not be shipped"}},
		"one beside one":               {files: map[string]string{"LICENSE": mit, "LICENSE.GPL": gpl}, refused: []string{"/LICENSE.GPL: GPL-3.0"}},
		"one behind one":               {files: map[string]string{"LICENSE": mit + gpl}, refused: []string{"/LICENSE: GPL-3.0"}},
		"a part's that may not be":     {files: map[string]string{"LICENSE": mit, "a/b/COPYING": gpl}, refused: []string{"/a/b/COPYING: GPL-3.0"}},
		"our own words":                {files: map[string]string{"LICENSE": "Do what you want."}, refused: []string{"/LICENSE: 0% of its words", "has to read it"}},
		"known, and a condition more":  {files: map[string]string{"LICENSE": mit + noTrade}, refused: []string{"/LICENSE: 8", "has to read it"}},
		"an address and nothing to it": {files: map[string]string{"LICENSE": "https://opensource.org/licenses/MIT"}, refused: []string{"has to read it"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			m := module{path: "example.com/m", version: "v1.2.3", dir: dir, packages: []string{filepath.Join(dir, "a", "b")}}
			for _, folder := range []string{"a/b", "c"} {
				if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for file, text := range tc.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var out strings.Builder
			err := report(&out, []module{m})
			if len(tc.refused) == 0 {
				first, _, _ := strings.Cut(out.String(), "\n")
				if diff := cmp.Diff("example.com/m v1.2.3 "+tc.want, strings.Join(strings.Fields(strings.ReplaceAll(first, " AND ", " ")), " ")); diff != "" || err != nil {
					t.Errorf("%v, (-want,+got):\n%s", err, diff)
				}
				return
			}
			for _, part := range tc.refused {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("error %v, want one that says %q", err, part)
				}
			}
		})
	}
}
