{{/* What no schema can say: values that contradict each other. Each refusal says what to do. */}}

{{- define "hansa.check" -}}
{{- $v := .Values -}}
{{- if eq $v.image.tag "latest" -}}
  {{- fail "image.tag: latest is another image tomorrow, and jobs' pods use the same one; give a fixed tag or image.digest" -}}
{{- end -}}
{{- if gt (int $v.replicas) 1 -}}
  {{- if eq $v.role "both" -}}
    {{- fail "replicas: several managers and several hubs are two releases; role both is one pod" -}}
  {{- end -}}
  {{- if ne $v.database.kind "postgresql" -}}
    {{- fail "replicas: several share their state in PostgreSQL; set database.kind=postgresql" -}}
  {{- end -}}
  {{- if $v.persistence.enabled -}}
    {{- fail "replicas: several cannot share one volume; set persistence.enabled=false" -}}
  {{- end -}}
  {{- if and (eq $v.role "manager") (eq $v.storage.kind "embedded") -}}
    {{- fail "replicas: several managers share an object store; set storage.kind=minio or s3" -}}
  {{- end -}}
{{- end -}}
{{- if and (eq $v.database.kind "postgresql") (not (or $v.database.url $v.existingSecret)) -}}
  {{- fail "database.kind=postgresql needs database.url, or existingSecret with the key database-url" -}}
{{- end -}}
{{- if and (eq $v.database.kind "sqlite") $v.database.url -}}
  {{- fail "database.url is given; set database.kind=postgresql too" -}}
{{- end -}}
{{- if and (include "hansa.isManager" .) (ne $v.storage.kind "embedded") -}}
  {{- if not $v.storage.endpoint -}}
    {{- fail (printf "storage.kind=%s needs storage.endpoint" $v.storage.kind) -}}
  {{- end -}}
  {{- if not (or (and $v.storage.accessKey $v.storage.secretKey) $v.existingSecret) -}}
    {{- fail (printf "storage.kind=%s needs storage.accessKey and storage.secretKey, or existingSecret with s3-access-key and s3-secret-key" $v.storage.kind) -}}
  {{- end -}}
{{- end -}}
{{- if and $v.persistence.existingClaim (not $v.persistence.enabled) -}}
  {{- fail "persistence.existingClaim is given; set persistence.enabled=true too" -}}
{{- end -}}
{{- if and (include "hansa.isManager" .) $v.kubernetes.namespaces -}}
  {{- if has .Release.Namespace $v.kubernetes.namespaces -}}
    {{- fail (printf "kubernetes.namespaces: %s is the manager's own, in which no pod of a user may run; give others" .Release.Namespace) -}}
  {{- end -}}
  {{- if ne $v.kubernetes.reach "given" -}}
    {{- fail (printf "kubernetes.namespaces: with kubernetes.reach=%s the manager makes namespaces; give none, or reach=given" $v.kubernetes.reach) -}}
  {{- end -}}
{{- end -}}
{{- $jobs := default (dict) $v.settings.jobs -}}
{{- if and (include "hansa.isManager" .) (eq $v.kubernetes.reach "given") (not $v.rbac.nodes) (not (and $jobs.cpu $jobs.memory)) -}}
  {{- fail "rbac.nodes=false: the manager cannot look at nodes then; say how much jobs may use with settings.jobs.cpu and settings.jobs.memory" -}}
{{- end -}}
{{- if and (include "hansa.isManager" .) (ne $v.kubernetes.reach "given") (not $v.rbac.nodes) -}}
  {{- fail "rbac.nodes=false goes with kubernetes.reach=given alone" -}}
{{- end -}}
{{- if and (include "hansa.isManager" .) (eq $v.kubernetes.reach "made") (semverCompare "<1.30.0-0" .Capabilities.KubeVersion.Version) -}}
  {{- fail "kubernetes.reach=made needs Kubernetes 1.30 or newer, whose admission policies confine the manager to its own namespaces" -}}
{{- end -}}
{{- $users := include "hansa.servicesNamespace" . -}}
{{- if and (include "hansa.isManager" .) (eq .Release.Namespace $users) -}}
  {{- fail (printf "namespace %s is where the admin's services run; install the manager into another" $users) -}}
{{- end -}}
{{- if and $v.existingSecret (or $v.admin.password $v.database.url $v.storage.accessKey $v.storage.secretKey $v.membership.token) -}}
  {{- fail "existingSecret is given: put passwords, keys, tokens and database.url into it, not into values" -}}
{{- end -}}
{{- range $path := list "admin.password" "database.url" "storage.access_key" "storage.secret_key" "membership.token" -}}
  {{- $steps := splitList "." $path -}}
  {{- if hasKey (default (dict) (index $v.settings (first $steps))) (last $steps) -}}
    {{- fail (printf "settings.%s would be readable by everybody who reads ConfigMaps; use the chart's own value or existingSecret" $path) -}}
  {{- end -}}
{{- end -}}
{{- if hasKey (default (dict) $v.settings.oidc) "issuers" -}}
  {{- fail "settings.oidc.issuers: use oidc.issuers" -}}
{{- end -}}
{{- range $path := list "role" "data" "driver" "http.port" "hub.port" "hub.members_port" "storage.port" "storage.kind" -}}
  {{- $steps := splitList "." $path -}}
  {{- $place := ternary $v.settings (default (dict) (index $v.settings (first $steps))) (eq (len $steps) 1) -}}
  {{- if hasKey $place (last $steps) -}}
    {{- fail (printf "settings.%s is set by the chart, which counts on it" $path) -}}
  {{- end -}}
{{- end -}}
{{- end -}}
