-- Makes the requests of every scenario for wrk. All of them share one ticket shape: two lines, now and then three,
-- some 700 to 1,000 bytes; one customer in five is new. Requests are put together as text, because wrk's own
-- formatter would cost the load generator more than the ticket does.

local STORES = 20
local CUSTOMERS = 10000
local CUSTOMERS_OF_MANY = 500
local NEW_CUSTOMERS_PERCENT = 20
local THREE_LINES_PERCENT = 20
local AGE_SECONDS_MAX = 172800
local BATCH_ITEMS = 100
local REPEATED_TICKETS = 1000
local READ_TICKETS = 200
local CHANGED_CUSTOMERS = 2000
local BATCH_PROFILES = 500

local NAMES = { "Linen shirt", "Wool jumper", "Denim jacket", "Cotton socks", "Leather belt", "Rain coat" }
local CATEGORIES = { "shirts", "knitwear", "jackets", "underwear", "accessories", "coats" }
local COLORS = { "navy", "ecru", "black", "olive" }
local SIZES = { "S", "M", "L", "XL" }

local threads_started = 0

function setup(thread)
    thread:set("thread_number", threads_started)
    threads_started = threads_started + 1
end

local scenario, run, keys, keys_count, host, epoch
local counter = 0

function init(args)
    scenario, run, epoch = args[1], args[2], tonumber(args[4])
    keys, keys_count = {}, 0
    for key in io.lines(args[3]) do
        keys_count = keys_count + 1
        keys[keys_count] = key
    end
    host = wrk.host .. ":" .. wrk.port
    math.randomseed(os.time() * 100 + thread_number + #run)
end

local random, format, concat, date = math.random, string.format, table.concat, os.date
local now = os.time()

local function next_name()
    counter = counter + 1
    if counter % 256 == 0 then now = os.time() end
    return run .. "-" .. thread_number .. "-" .. counter
end

local function line(number)
    local kind = random(#NAMES)
    local price = random(500, 15000)
    return format('{"external_id":"%d","product":{"external_id":"SKU-%06d","name":"%s","properties":{"category":"%s",'
        .. '"color":"%s","size":"%s"}},"quantity":1,"unit_price_cents":%d,'
        .. '"total_price_cents":%d,"discount_cents":0,"tax_cents":%d}',
        number, random(200000), NAMES[kind], CATEGORIES[kind], COLORS[random(#COLORS)], SIZES[random(#SIZES)],
        price, price, math.floor(price / 6))
end

local function ticket(name, customer, store)
    store = store or format("S%03d", random(STORES))
    local lines = line(1) .. "," .. line(2)
    if random(100) <= THREE_LINES_PERCENT then lines = lines .. "," .. line(3) end
    return concat({ '{"external_id":"', store, ":", name, '","type":"PURCHASE","occurred_at":"',
        date("!%Y-%m-%dT%H:%M:%S.120Z", now - random(60, AGE_SECONDS_MAX)), '","store_id":"', store,
        '","currency":"EUR","total_amount_cents":', random(1000, 30000), ',"total_discount_cents":', random(0, 900),
        ',"total_tax_cents":', random(100, 5000), ',"profile_id":"', customer,
        '","source":"pos","line_items":[', lines, ']}' })
end

local function known_customer(count) return format("C%06d", random(count or CUSTOMERS)) end

local function some_customer(name, count)
    if random(100) <= NEW_CUSTOMERS_PERCENT then return "N" .. name end
    return known_customer(count)
end

local function post(path, body, key, extra)
    return concat({ "POST ", path, " HTTP/1.1\r\nHost: ", host, "\r\nx-api-key: ", key,
        "\r\nContent-Type: application/json\r\n", extra or "", "Content-Length: ", #body, "\r\n\r\n", body })
end

local makers = {}

function makers.sales()
    local name = next_name()
    return post("/v1/sales-events", ticket(name, some_customer(name)), keys[1])
end

makers["sales-with-keys"] = function()
    local name = next_name()
    return post("/v1/sales-events", ticket(name, some_customer(name)), keys[1], "Idempotency-Key: " .. name .. "\r\n")
end

makers["sales-organizations"] = function()
    local name = next_name()
    return post("/v1/sales-events", ticket(name, some_customer(name, CUSTOMERS_OF_MANY)), keys[random(keys_count)])
end

-- The same tickets in turn, equal in every run: their first appearance, in the warm-up, is the only one recorded.
local repeated
function makers.duplicates()
    if not repeated then
        local seed = counter + os.time()
        repeated, now = {}, epoch
        math.randomseed(7)
        for number = 1, REPEATED_TICKETS do repeated[number] = ticket("twice-" .. number, known_customer()) end
        math.randomseed(seed)
    end
    counter = counter + 1
    return post("/v1/sales-events", repeated[counter % REPEATED_TICKETS + 1], keys[1])
end

makers["sales-batch"] = function()
    local items = {}
    for index = 1, BATCH_ITEMS do
        local name = next_name()
        items[index] = ticket(name, some_customer(name))
    end
    return post("/v1/sales-events/batch", '{"items":[' .. concat(items, ",") .. "]}", keys[1])
end

function makers.profiles()
    local name = next_name()
    local customer = random(100) <= NEW_CUSTOMERS_PERCENT and "N" .. name or known_customer()
    return post("/v1/profiles", format('{"external_id":"%s","first_name":"Camille","last_name":"Martin",'
        .. '"phone_number":"+336%08d","attributes":{"city":"Lyon","loyalty_tier":"gold","points":"%d",'
        .. '"birthday":"1987-04-12","newsletter":"true"}}', customer, random(0, 99999999), random(5000)), keys[1])
end

local function profile(customer, points)
    return format('{"external_id":"%s","first_name":"Camille","last_name":"Martin","phone_number":"+336%08d",'
        .. '"attributes":{"city":"Lyon","loyalty_tier":"gold","points":"%d"}}', customer, random(0, 99999999), points)
end

makers["profiles-new"] = function()
    return post("/v1/profiles", profile("N" .. next_name(), random(5000)), keys[1])
end

-- One attribute of customers who are known: nothing else of them changes.
makers["profiles-changing"] = function()
    return post("/v1/profiles", format('{"external_id":"C%06d","attributes":{"points":"%d"}}',
        random(CHANGED_CUSTOMERS), random(1000000)), keys[1])
end

makers["profiles-batch"] = function()
    local items = {}
    for index = 1, BATCH_PROFILES do items[index] = profile("N" .. next_name(), random(5000)) end
    return post("/v1/profiles/batch", '{"items":[' .. concat(items, ",") .. "]}", keys[1])
end

makers["opt-ins"] = function()
    next_name()
    return post("/v1/subscriptions/opt-in", format('{"phone_number":"+336%08d","profile_id":"%s",'
        .. '"consent_source":"LOYALTY_PROGRAM","consented_at":"%s","consent_proof":{"terms_url":'
        .. '"https://shop.example/terms","terms_version":"2026-01","source_text":"I want to hear from you by SMS."}}',
        random(0, 99999999), known_customer(), date("!%Y-%m-%dT%H:%M:%S.120Z", now - random(60, AGE_SECONDS_MAX))),
        keys[1])
end

makers["get-profile"] = function()
    return concat({ "GET /v1/profiles/", known_customer(), " HTTP/1.1\r\nHost: ", host, "\r\nx-api-key: ", keys[1],
        "\r\n\r\n" })
end

-- The tickets that are read are sent first, by the warm-up, whose name ends with a w. One more than there are: wrk makes
-- a request before it begins, to look at it, and never sends that.
makers["get-sale"] = function()
    counter = counter + 1
    if run:sub(-1) == "w" and counter <= READ_TICKETS + 1 then
        local name = "read-" .. counter % READ_TICKETS + 1
        return post("/v1/sales-events", ticket(name, known_customer(), "S001"), keys[1])
    end
    return concat({ "GET /v1/sales-events/S001:read-", random(READ_TICKETS), " HTTP/1.1\r\nHost: ", host,
        "\r\nx-api-key: ", keys[1], "\r\n\r\n" })
end

function request() return makers[scenario]() end

function done(summary, latency)
    io.write(format('RESULT {"requests":%d,"duration_us":%d,"p50_us":%d,"p99_us":%d,"max_us":%d,"connect_errors":%d,'
        .. '"read_errors":%d,"write_errors":%d,"status_errors":%d,"timeout_errors":%d}\n',
        summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), latency.max,
        summary.errors.connect, summary.errors.read, summary.errors.write, summary.errors.status,
        summary.errors.timeout))
end
