-- A name as it is searched: two parts in this order, without accents, case and punctuation, and short enough to index.
-- Compatibility forms may become longer when they are taken apart, so it is cut before and after.
CREATE FUNCTION folded_name(one text, other text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN left(
    lower(
        btrim(
            regexp_replace(
                regexp_replace(
                    normalize(left(coalesce(one || ' ', '') || coalesce(other, ''), 64), NFKD),
                    '[\u0300-\u036f]', '', 'g'
                ),
                '[-''’.,[:space:]]+', ' ', 'g'
            )
        )
    ),
    64
);
