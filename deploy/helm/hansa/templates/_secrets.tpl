{{/* What is in the chart's own Secret, as JSON? What nobody gave is made once: an upgrade finds it in the cluster. */}}

{{- define "hansa.secretData" -}}
{{- if not (hasKey .Values "madeSecret") -}}
  {{- $v := .Values -}}
  {{- $there := default (dict) (lookup "v1" "Secret" .Release.Namespace (include "hansa.fullname" .)) -}}
  {{- $old := default (dict) $there.data -}}
  {{- $all := dict -}}
  {{- $kept := dict "admin-password" $v.admin.password "salt" "" -}}
  {{- range $name, $given := $kept -}}
    {{- $before := default "" (index $old $name) | b64dec -}}
    {{- $_ := set $all $name (default (default (randAlphaNum 24) $before) $given) -}}
  {{- end -}}
  {{- if include "hansa.keyInSecret" . -}}
    {{- $before := default "" (index $old "hub.key") | b64dec -}}
    {{- $_ := set $all "hub.key" (default (randBytes 32 | replace "+" "-" | replace "/" "_") $before) -}}
  {{- end -}}
  {{- $given := dict
        "database-url" $v.database.url
        "s3-access-key" $v.storage.accessKey
        "s3-secret-key" $v.storage.secretKey
        "join-token" $v.membership.token -}}
  {{- range $name, $text := $given -}}
    {{- if $text }}{{ $_ := set $all $name $text }}{{ end -}}
  {{- end -}}
  {{- if include "hansa.issuersInSecret" . -}}
    {{- $_ := set $all "oidc-issuers" (toJson $v.oidc.issuers) -}}
  {{- end -}}
  {{- $_ := set $v "madeSecret" $all -}}
{{- end -}}
{{- toJson .Values.madeSecret -}}
{{- end -}}

{{/* Which of its keys does the container need, as variables that are settings? */}}
{{- define "hansa.secretVariables" -}}
{{- $secret := include "hansa.secret" . -}}
{{- $needed := dict "HANSA_ADMIN__PASSWORD" "admin-password" -}}
{{- if eq .Values.database.kind "postgresql" -}}
  {{- $_ := set $needed "HANSA_DATABASE__URL" "database-url" -}}
{{- end -}}
{{- if and (include "hansa.isManager" .) (ne .Values.storage.kind "embedded") -}}
  {{- $_ := set $needed "HANSA_STORAGE__ACCESS_KEY" "s3-access-key" -}}
  {{- $_ := set $needed "HANSA_STORAGE__SECRET_KEY" "s3-secret-key" -}}
{{- end -}}
{{- if include "hansa.issuersInSecret" . -}}
  {{- $_ := set $needed "HANSA_OIDC__ISSUERS" "oidc-issuers" -}}
{{- end -}}
{{- range $variable, $key := $needed }}
- name: {{ $variable }}
  valueFrom:
    secretKeyRef:
      name: {{ $secret }}
      key: {{ $key }}
{{- end }}
{{- if and (include "hansa.isManager" .) .Values.membership.hub }}
- name: HANSA_MEMBERSHIP__TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ $secret }}
      key: join-token
      optional: true  # needed once; a certificate takes its place
{{- end }}
{{- end -}}
