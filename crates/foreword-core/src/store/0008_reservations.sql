-- The most that an open call may cost, taken from the budgets before the call is made, so that
-- processes that ask at the same time stay within them together. The outcome of the call replaces it.
-- Until then the tokens and the cost of the row are an estimate, which counts when the call's time is
-- over and nobody completed the row.

-- Null if the price is not known; then the tokens count.
alter table ledger add column reserved_usd real;
alter table ledger add column reserved_tokens integer;
-- Until when the call may still be answered; null if its outcome is known.
alter table ledger add column reserved_until integer;
