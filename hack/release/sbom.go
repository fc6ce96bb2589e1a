package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"runtime/debug"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// bill is the bill of materials of a program, CycloneDX JSON, from what the
// linker wrote into it.
func (m *maker) bill(program string) ([]byte, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("reading what the program is built from: %w", err)
	}
	main := component(debug.Module{Path: info.Main.Path, Version: m.version}, cdx.ComponentTypeApplication)
	bom := cdx.NewBOM()
	bom.SerialNumber = "urn:uuid:" + uuid.NewSHA1(uuid.NameSpaceURL, []byte(main.PackageURL+"#"+m.commit)).String()
	bom.Metadata = &cdx.Metadata{Timestamp: m.at.Format("2006-01-02T15:04:05Z"), Component: &main}
	std := component(debug.Module{Path: "stdlib", Version: info.GoVersion}, cdx.ComponentTypeLibrary)
	components := []cdx.Component{std}
	refs := []string{std.BOMRef}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		c := component(*dep, cdx.ComponentTypeLibrary)
		components = append(components, c)
		refs = append(refs, c.BOMRef)
	}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	var out bytes.Buffer
	if err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("writing the bill of materials: %w", err)
	}
	return out.Bytes(), nil
}

func component(mod debug.Module, kind cdx.ComponentType) cdx.Component {
	purl := "pkg:golang/" + mod.Path + "@" + mod.Version
	c := cdx.Component{BOMRef: purl, Type: kind, Name: mod.Path, Version: mod.Version, PackageURL: purl}
	if mod.Sum != "" {
		c.Properties = &[]cdx.Property{{Name: "go:sum", Value: mod.Sum}}
	}
	return c
}
