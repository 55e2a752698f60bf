/**
 * A certificate for `media.example` that nobody trusts, and its key: only for tests of TLS. Made by
 * `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 36500 -subj /CN=media.example
 * -addext subjectAltName=DNS:media.example`.
 */
export const TEST_CERTIFICATE = `\
-----BEGIN CERTIFICATE-----
MIIBojCCAUegAwIBAgIUO0DdVWRFLZUq6du9ttvkfX6TCGYwCgYIKoZIzj0EAwIw
GDEWMBQGA1UEAwwNbWVkaWEuZXhhbXBsZTAgFw0yNjExMjExOTE0NDZaGA8yMTI2
MTAyODE5MTQ0NlowGDEWMBQGA1UEAwwNbWVkaWEuZXhhbXBsZTBZMBMGByqGSM49
AgEGCCqGSM49AwEHA0IABOyOV1Bslw5LorVI+8PHj0MXecJbI6U02QCtmVgR/yUX
dt4tBur+81h+/OzZdtbGlmbKKCIeEApxMpf7THBQwCGjbTBrMB0GA1UdDgQWBBTW
Js3kNQFJg9xNB9Lk1Wmyzm7N3TAfBgNVHSMEGDAWgBTWJs3kNQFJg9xNB9Lk1Wmy
zm7N3TAPBgNVHRMBAf8EBTADAQH/MBgGA1UdEQQRMA+CDW1lZGlhLmV4YW1wbGUw
CgYIKoZIzj0EAwIDSQAwRgIhAPJcQ9Yc77my1fCJyxQR915a7P8EC9EFm4pgC+EB
Y8EnAiEAuOuLPw1Yw4JUqJpB9cKnZdULl5+Bz6ziI1zupjfFxy8=
-----END CERTIFICATE-----
`;

/** Its key. */
export const TEST_KEY = `\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQglx5qiYxhIZEwgzhF
mrGwZBRz98IraMXA+OLmVtiwA7ihRANCAATsjldQbJcOS6K1SPvDx49DF3nCWyOl
NNkArZlYEf8lF3beLQbq/vNYfvzs2XbWxpZmyigiHhAKcTKX+0xwUMAh
-----END PRIVATE KEY-----
`;
