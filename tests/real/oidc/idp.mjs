// A real OpenID Connect provider for tests: which tokens would Keycloak hand out?
//
// One process serves several realms under Keycloak's addresses (/realms/<name>/protocol/openid-connect/...), each
// with keys of its own. Configuration is one JSON object in IDP_CONFIG:
//   { port: 0, realms: { <realm>: { access_ttl, refresh_ttl, rotate, alg, audience, claims_in_token } },
//     users: { <login>: { password, name, groups, claims } } }
// The line `READY <base address>` on stdout says that it listens. Besides the realms it offers to tests:
//   POST /control/rotate/<realm>?keep=0|1   sign with a new key; keep says whether the old one stays published
//   GET  /control/counts                    how often each path was asked
import http from 'node:http';
import { exportJWK, generateKeyPair, jwtVerify, createLocalJWKSet } from 'jose';
import { errors, Provider } from 'oidc-provider';

const CONFIG = JSON.parse(process.env.IDP_CONFIG || '{}');
const USERS = CONFIG.users || {};
const CLIENT = 'hansa-tests';
const CALLBACK = 'http://127.0.0.1/callback'; // nothing listens there: tests read the redirect
const PATH = '/protocol/openid-connect';
const SCOPES = ['openid', 'offline_access', 'profile', 'email', 'groups'];
const GROUP_CLAIMS = ['groups', 'group_membership', 'realm_access', 'entitlements'];
const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';

const counts = {};
const realms = new Map();

async function newKey(alg) {
  const { privateKey } = await generateKeyPair(alg, { extractable: true });
  return { ...(await exportJWK(privateKey)), alg, use: 'sig', kid: crypto.randomUUID() };
}

function publicPart({ kty, kid, alg, use, n, e, crv, x, y }) {
  return JSON.parse(JSON.stringify({ kty, kid, alg, use, n, e, crv, x, y }));
}

const loginOf = (subject) => Object.keys(USERS).find((login) => subjectOf(login) === subject);
const subjectOf = (login) => USERS[login]?.claims?.sub ?? `${login}@test`;

function claimsOf(login) {
  const user = USERS[login];
  const groups = user.groups;
  return {
    sub: subjectOf(login),
    name: user.name ?? login,
    preferred_username: login,
    email: `${login}@example.test`,
    ...(groups && { groups, group_membership: groups, realm_access: { roles: groups } }),
    ...user.claims,
  };
}

// What a realm remembers. oidc-provider's own memory goes with the instance, ours survives a change of keys.
function memory() {
  const rows = new Map();
  const find = (test) => [...rows.values()].find(test);
  return (model) => ({
    upsert: async (id, payload) => void rows.set(`${model}:${id}`, payload),
    find: async (id) => rows.get(`${model}:${id}`),
    findByUid: async (uid) => find((row) => row.kind === model && row.uid === uid),
    findByUserCode: async (code) => find((row) => row.kind === model && row.userCode === code),
    consume: async (id) => { rows.get(`${model}:${id}`).consumed = Math.floor(Date.now() / 1000); },
    destroy: async (id) => void rows.delete(`${model}:${id}`),
    revokeByGrantId: async (grant) => rows.forEach((row, key) => { if (row.grantId === grant) rows.delete(key); }),
  });
}

class Realm {
  constructor(name, base, settings) {
    this.name = name;
    this.prefix = `/realms/${name}`;
    this.issuer = base + this.prefix;
    this.memory = memory();
    this.settings = {
      access_ttl: 300, refresh_ttl: 86400, rotate: true, alg: 'RS256', audience: 'urn:hansa:test', claims_in_token: true,
      ...settings,
    };
  }

  // A provider's keys are fixed when it is made, so new keys mean a new provider on the same memory.
  async rotate(keepOld) {
    const old = keepOld ? this.keys.slice(0, 1) : [];
    this.keys = [await newKey(this.settings.alg), ...old];
    this.verificationKeys = createLocalJWKSet({ keys: this.keys.map(publicPart) });
    this.provider = this.build();
    this.callback = this.provider.callback();
  }

  account(login) {
    return login === undefined || !USERS[login]
      ? undefined
      : { accountId: subjectOf(login), claims: () => claimsOf(login) };
  }

  resourceServer(scope) {
    return {
      scope,
      audience: this.settings.audience,
      accessTokenFormat: 'jwt',
      accessTokenTTL: this.settings.access_ttl,
      jwt: { sign: { alg: this.settings.alg } },
    };
  }

  build() {
    const { access_ttl: access, refresh_ttl: refresh, rotate, audience, claims_in_token: inToken, alg } = this.settings;
    const provider = new Provider(this.issuer, {
      clients: [{
        client_id: CLIENT,
        token_endpoint_auth_method: 'none',
        redirect_uris: [CALLBACK],
        response_types: ['code'],
        grant_types: ['authorization_code', 'refresh_token', 'password', TOKEN_EXCHANGE],
        id_token_signed_response_alg: alg,
      }],
      adapter: this.memory,
      jwks: { keys: this.keys },
      cookies: { keys: ['only for tests'] },
      scopes: SCOPES,
      claims: { openid: ['sub'], profile: ['name', 'preferred_username'], email: ['email'], groups: GROUP_CLAIMS },
      findAccount: (ctx, subject) => this.account(loginOf(subject)),
      extraTokenClaims: (ctx, token) => (inToken && token.accountId ? claimsOf(loginOf(token.accountId)) : undefined),
      issueRefreshToken: async (ctx, client, code) => code.scopes.has('offline_access'),
      rotateRefreshToken: rotate,
      pkce: { required: () => true },
      ttl: {
        AccessToken: access, IdToken: access, RefreshToken: refresh, Grant: refresh,
        AuthorizationCode: 60, Interaction: 300, Session: 3600,
      },
      routes: {
        authorization: `${PATH}/auth`, token: `${PATH}/token`, userinfo: `${PATH}/userinfo`, jwks: `${PATH}/certs`,
        revocation: `${PATH}/revoke`, introspection: `${PATH}/token/introspect`,
      },
      features: {
        devInteractions: { enabled: false },
        rpInitiatedLogout: { enabled: false },
        revocation: { enabled: true },
        introspection: { enabled: true },
        userinfo: { enabled: true },
        resourceIndicators: {
          enabled: true,
          defaultResource: () => audience,
          useGrantedResource: () => true,
          getResourceServerInfo: () => this.resourceServer(SCOPES.join(' ')),
        },
      },
      interactions: { url: (ctx, interaction) => `${this.prefix}/login/${interaction.uid}` },
    });
    this.addGrants(provider);
    return provider;
  }

  addGrants(provider) {
    provider.registerGrantType('password', async (ctx) => {
      const { username, password, scope = 'openid' } = ctx.oidc.params;
      if (!USERS[username] || USERS[username].password !== password) throw new errors.InvalidGrant('bad credentials');
      ctx.body = await this.mint(provider, ctx, subjectOf(username), scope, scope.includes('offline_access'));
    }, ['username', 'password', 'scope']);
    provider.registerGrantType(TOKEN_EXCHANGE, async (ctx) => {
      const { subject_token: given, scope = 'openid' } = ctx.oidc.params;
      const { sub } = await this.verified(given).catch((cause) => { throw new errors.InvalidGrant(cause.message); });
      ctx.body = {
        ...(await this.mint(provider, ctx, sub, scope, false)),
        issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      };
    }, ['subject_token', 'subject_token_type', 'requested_token_type', 'scope']);
  }

  async verified(token) {
    return (await jwtVerify(token, this.verificationKeys, { issuer: this.issuer })).payload;
  }

  async grant(provider, accountId, clientId, scope) {
    const grant = new provider.Grant({ accountId, clientId });
    grant.addOIDCScope(scope);
    grant.addResourceScope(this.settings.audience, scope);
    await grant.save();
    return grant;
  }

  async mint(provider, ctx, accountId, scope, withRefresh) {
    const { client } = ctx.oidc;
    const grant = await this.grant(provider, accountId, client.clientId, scope);
    ctx.oidc.entity('Account', this.account(loginOf(accountId)));
    ctx.oidc.entity('Grant', grant);
    const base = { accountId, client, gty: 'password', grantId: grant.jti, scope };
    const access = new provider.AccessToken(base);
    access.resourceServer = new provider.ResourceServer(this.settings.audience, this.resourceServer(scope));
    const answer = { access_token: await access.save(), token_type: 'Bearer', expires_in: access.expiration, scope };
    if (withRefresh) {
      const issued = Math.floor(Date.now() / 1000);
      const token = new provider.RefreshToken({ ...base, resource: this.settings.audience, rotations: 0, iiat: issued });
      answer.refresh_token = await token.save();
    }
    return answer;
  }

  async answer(request, response, path) {
    const inner = path.slice(this.prefix.length) || '/';
    if (inner === `${PATH}/userinfo`) return this.userinfo(request, response);
    if (inner.startsWith('/login/')) return this.login(request, response);
    request.originalUrl = request.url; // oidc-provider makes its own addresses from this one
    request.url = request.url.slice(this.prefix.length) || '/';
    return this.callback(request, response);
  }

  // oidc-provider refuses JWT access tokens at userinfo by design; Keycloak and EGI Check-in accept them.
  async userinfo(request, response) {
    try {
      const token = (request.headers.authorization || '').replace(/^Bearer /i, '');
      sendJson(response, 200, claimsOf(loginOf((await this.verified(token)).sub)));
    } catch {
      response.setHeader('www-authenticate', 'Bearer error="invalid_token"');
      sendJson(response, 401, { error: 'invalid_token' });
    }
  }

  async login(request, response) {
    const { params, prompt } = await this.provider.interactionDetails(request, response);
    if (request.method === 'GET') {
      response.setHeader('content-type', 'text/html');
      response.end(`<form method="post">${prompt.name}<input name="username"><input name="password"></form>`);
      return;
    }
    let body = '';
    for await (const chunk of request) body += chunk;
    const form = new URLSearchParams(body);
    const user = USERS[form.get('username')];
    if (!user || user.password !== form.get('password')) return void sendJson(response, 401, { error: 'bad credentials' });
    const accountId = subjectOf(form.get('username'));
    const grant = await this.grant(this.provider, accountId, params.client_id, params.scope);
    await this.provider.interactionFinished(request, response, { login: { accountId }, consent: { grantId: grant.jti } });
  }
}

function sendJson(response, status, body) {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

async function control(request, response, url) {
  const [, , verb, name] = url.pathname.split('/');
  if (verb === 'counts') return sendJson(response, 200, counts);
  if (verb === 'rotate' && request.method === 'POST' && realms.has(name)) {
    await realms.get(name).rotate(url.searchParams.get('keep') !== '0');
    return sendJson(response, 200, { kid: realms.get(name).keys[0].kid });
  }
  return sendJson(response, 404, { error: 'no such control' });
}

const server = http.createServer((request, response) => {
  const url = new URL(request.url, 'http://127.0.0.1');
  const realm = realms.get(url.pathname.split('/')[2]);
  counts[url.pathname] = (counts[url.pathname] || 0) + 1;
  const done = url.pathname.startsWith('/control/')
    ? control(request, response, url)
    : realm && url.pathname.startsWith(realm.prefix)
      ? realm.answer(request, response, url.pathname)
      : sendJson(response, 404, { error: 'no such realm' });
  Promise.resolve(done).catch((error) => {
    console.error(error);
    if (!response.headersSent) sendJson(response, 500, { error: 'internal' });
  });
});

server.listen(CONFIG.port || 0, '127.0.0.1', async () => {
  const base = `http://127.0.0.1:${server.address().port}`;
  for (const [name, settings] of Object.entries(CONFIG.realms || { test: {} })) {
    const realm = new Realm(name, base, settings);
    await realm.rotate(false);
    realms.set(name, realm);
  }
  console.log('READY', base);
});
process.on('SIGTERM', () => process.exit(0));
process.stdin.on('end', () => process.exit(0)).resume(); // never outlive the tests that started us
