{{/* hansa.toml: what the values say, in the words of docs/reference/settings.md, and .Values.settings over it. */}}

{{- define "hansa.settings" -}}
{{- $v := .Values -}}
{{- $all := dict "role" $v.role "data" "/var/lib/hansa" "log" (dict "form" "json") -}}
{{- $_ := set $all "admin" (dict "user" $v.admin.user) -}}
{{- $oidc := dict "users_admin" $v.oidc.usersAdmin -}}
{{- if not (include "hansa.issuersInSecret" .) -}}
  {{- $_ := set $oidc "issuers" $v.oidc.issuers -}}
{{- end -}}
{{- if $v.oidc.home -}}
  {{- $_ := set $oidc "home" $v.oidc.home -}}
{{- end -}}
{{- if or $v.oidc.issuers $v.oidc.usersAdmin $v.oidc.home -}}
  {{- $_ := set $all "oidc" $oidc -}}
{{- end -}}
{{- if include "hansa.isManager" . -}}
  {{- $_ := set $all "driver" "kubernetes" -}}
  {{- $_ := set $all "cluster" (dict
        "id" (default .Release.Name $v.cluster.id)
        "public_url" (default (printf "http://%s:8080" (include "hansa.host" .)) $v.cluster.publicUrl)) -}}
  {{- $_ := set $all "http" (dict "host" "0.0.0.0" "port" 8080) -}}
  {{- $store := dict "kind" $v.storage.kind "region" $v.storage.region "verify" $v.storage.verify -}}
  {{- if eq $v.storage.kind "embedded" -}}
    {{- $_ := set $store "host" "0.0.0.0" -}}
    {{- $_ := set $store "port" 8333 -}}
    {{- $_ := set $store "public_endpoint" (default (printf "http://%s:8333" (include "hansa.host" .)) $v.storage.publicEndpoint) -}}
  {{- else -}}
    {{- $_ := set $store "endpoint" $v.storage.endpoint -}}
    {{- $_ := set $store "public_endpoint" $v.storage.publicEndpoint -}}
  {{- end -}}
  {{- $_ := set $all "storage" $store -}}
  {{- $_ := set $all "kubernetes" (dict
        "image" (include "hansa.image" .)
        "pull_secrets" $v.image.pullSecrets
        "namespace" .Release.Namespace
        "namespaces" (fromJsonArray (include "hansa.namespaces" .))
        "binding" (ternary (include "hansa.usersRole" .) "" (eq $v.kubernetes.reach "made"))
        "shared" (eq (include "hansa.isShared" .) "true")
        "storage_class" $v.kubernetes.storageClass
        "user" (int64 $v.kubernetes.user)
        "priority_class" $v.kubernetes.priorityClass
        "node_selector" $v.kubernetes.nodeSelector
        "tolerations" $v.kubernetes.tolerations) -}}
  {{- $_ := set $all "membership" (dict "hub" $v.membership.hub "region" $v.membership.region "zone" $v.membership.zone) -}}
{{- end -}}
{{- if include "hansa.isHub" . -}}
  {{- $members := printf "https://%s-members.%s.svc:7443" (include "hansa.fullname" .) .Release.Namespace -}}
  {{- $_ := set $all "hub" (dict
        "host" "0.0.0.0" "port" 7070 "members_host" "0.0.0.0" "members_port" 7443
        "members_url" (default $members $v.hub.membersUrl)
        "trust_domain" $v.hub.trustDomain) -}}
{{- end -}}
{{- mergeOverwrite $all (deepCopy $v.settings) | toToml -}}
{{- end -}}
