#!lua
-- Compare and write, all or nothing. Called by store/redis.py only, which encodes the plan.
--
-- KEYS      one per check, then one per write, in the transaction's order (all of one slot)
-- ARGV[1]   msgpack of {want, steps, given}
--             want   one number per check: >= 0 the length the key must have (0: absent);
--                    -1 the key must be absent; -2 the key must equal the next value of ARGV
--             steps  two numbers per write: 1, limit = APPEND; 2, ttl in ms (0: none) = SET;
--                    3, 0 = DEL; 4, 0 = XADD; 5, keep = APPEND, then only the last ``keep`` bytes
--                    stay once there are more than twice as many; 6, 0 = SET to the SHA-1 of the
--                    former value and the next one of ARGV. All but DEL use the next value of ARGV
--             given  true: the first check is a guard, not counted; if it holds, the other checks are
--                    known to hold and are skipped
-- ARGV[2..] those values
-- returns   the numbers (from 1) of the failed checks; empty: everything was applied
--
-- The first line lets the server refuse the whole script when it is out of memory, read-only or
-- cannot write its append-only file. Without it a script fails at the first such command, half done.
local plan = cmsgpack.unpack(ARGV[1])
local want, steps, given = plan[1], plan[2], plan[3]
local call = redis.call
local failed = {}
local value = 1
local before = given and 1 or 0

for i = 1, #want do
  local wanted, holds = want[i], nil
  if wanted >= 0 then
    holds = call('STRLEN', KEYS[i]) == wanted
  elseif wanted == -1 then
    holds = call('EXISTS', KEYS[i]) == 0
  else
    value = value + 1
    holds = call('GET', KEYS[i]) == ARGV[value]
  end
  if i <= before then
    if holds then
      for j = i + 1, #want do
        if want[j] == -2 then
          value = value + 1
        end
      end
      break
    end
  elseif not holds then
    failed[#failed + 1] = i - before
  end
end
if #failed > 0 then
  return failed
end

local k = #want
for i = 1, #steps, 2 do
  local step, number = steps[i], steps[i + 1]
  k = k + 1
  if step == 3 then
    call('DEL', KEYS[k])
  else
    value = value + 1
    if step == 1 then
      if number == 0 or call('STRLEN', KEYS[k]) + #ARGV[value] <= number then
        call('APPEND', KEYS[k], ARGV[value])
      end
    elseif step == 5 then
      if call('APPEND', KEYS[k], ARGV[value]) > 2 * number then
        call('SET', KEYS[k], call('GETRANGE', KEYS[k], -number, -1), 'KEEPTTL')
      end
    elseif step == 6 then
      call('SET', KEYS[k], redis.sha1hex((call('GET', KEYS[k]) or '') .. ARGV[value]))
    elseif step == 2 then
      if number == 0 then
        call('SET', KEYS[k], ARGV[value])
      else
        call('SET', KEYS[k], ARGV[value], 'PX', number)
      end
    else
      call('XADD', KEYS[k], '*', 'p', ARGV[value])
    end
  end
end
return failed
