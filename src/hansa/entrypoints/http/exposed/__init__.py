"""Tenants' pages: `/system/services/{name}/exposed/…` is passed on to the service's own process.

`visitors` says who may in, `headers` and `cookies` what passes in each direction, `origins` where pages live, `bodies`
how long a visitor may take. `routes` and `sockets` are the doors, `transport` the connections into the service and
`answers` what is read from them. The process belongs to a tenant and its pages run in visitors' browsers, so neither is
trusted with anything of ours.
"""
