-- Ids as the wire has them, so that a statement can put one into an answer that it stores.

-- One of Crockford's 32 digits, by the lowest five bits.
CREATE FUNCTION base32_digit(n integer) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN substr('0123456789abcdefghjkmnpqrstvwxyz', 1 + (n & 31), 1);

-- The 26 digits of a UUID: 130 bits, of which the first two are 0. Written out, because a loop takes twice as long.
CREATE FUNCTION base32_uuid(b bytea) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN
    base32_digit(get_byte(b, 0) >> 5) || base32_digit(get_byte(b, 0)) ||
    base32_digit(get_byte(b, 1) >> 3) || base32_digit((get_byte(b, 2) >> 6) | (get_byte(b, 1) << 2)) ||
    base32_digit(get_byte(b, 2) >> 1) || base32_digit((get_byte(b, 3) >> 4) | (get_byte(b, 2) << 4)) ||
    base32_digit((get_byte(b, 4) >> 7) | (get_byte(b, 3) << 1)) || base32_digit(get_byte(b, 4) >> 2) ||
    base32_digit((get_byte(b, 5) >> 5) | (get_byte(b, 4) << 3)) || base32_digit(get_byte(b, 5)) ||
    base32_digit(get_byte(b, 6) >> 3) || base32_digit((get_byte(b, 7) >> 6) | (get_byte(b, 6) << 2)) ||
    base32_digit(get_byte(b, 7) >> 1) || base32_digit((get_byte(b, 8) >> 4) | (get_byte(b, 7) << 4)) ||
    base32_digit((get_byte(b, 9) >> 7) | (get_byte(b, 8) << 1)) || base32_digit(get_byte(b, 9) >> 2) ||
    base32_digit((get_byte(b, 10) >> 5) | (get_byte(b, 9) << 3)) || base32_digit(get_byte(b, 10)) ||
    base32_digit(get_byte(b, 11) >> 3) || base32_digit((get_byte(b, 12) >> 6) | (get_byte(b, 11) << 2)) ||
    base32_digit(get_byte(b, 12) >> 1) || base32_digit((get_byte(b, 13) >> 4) | (get_byte(b, 12) << 4)) ||
    base32_digit((get_byte(b, 14) >> 7) | (get_byte(b, 13) << 1)) || base32_digit(get_byte(b, 14) >> 2) ||
    base32_digit((get_byte(b, 15) >> 5) | (get_byte(b, 14) << 3)) || base32_digit(get_byte(b, 15));

CREATE FUNCTION canonical_id(prefix text, id uuid) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN prefix || base32_uuid(uuid_send(id));
