// CoreDNS with the few plugins that a test cluster needs: a build with all of them takes far longer.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/template"
)

func main() {
	// In the order in which they are asked: template, which answers everything, is the last.
	dnsserver.Directives = []string{"bind", "ready", "errors", "cache", "kubernetes", "template"}
	coremain.Run()
}
