"""Words with similar meanings, for the search over tools.

People describe a task in words other than those of its author: "get rid of a picture" instead of
"delete an image". The groups contain general words of computing and business. The name of a product
or of a single app does not belong here.

    picture image photo     words with about the same meaning, in both directions
    get-rid-of throw-away   a phrase; an object may stand before its last word
    invoice < overdue       "overdue" finds "invoice", but "invoice" does not find "overdue"
"""

from __future__ import annotations

# A group is one line, or a part of a line between slashes. A word may be in several groups.
SIMILAR_WORDS = """
delete remove rm del erase drop destroy purge wipe unlink trash discard get-rid-of throw-away bin
delete < eliminate scrap nuke dispose take-down / clear empty flush clean
list ls show display view see browse enumerate overview / list < which all available existing
get fetch read retrieve show view see print load cat open obtain pull / download fetch get save pull
find search query look-for lookup look-up locate grep seek hunt discover filter browse
create new add make generate init insert register set-up start compose write / add include append
add < extra another more additional / create < design draft prepare build produce construct
update edit modify change alter adjust patch revise amend correct fix / correct fix repair adjust
rename retitle name relabel change / set configure assign define specify choose select pick
copy clone duplicate cp replicate reuse mirror fork / move mv relocate transfer shift migrate
send post publish upload push submit deliver dispatch transmit / upload put store send import
run execute exec start launch invoke trigger kick-off begin fire call perform / boot start power-on
start < spin-up bring-up turn-on fire-up commence initiate / begin start commence open initiate
stop kill cancel abort terminate halt end quit interrupt finish
stop < shut-down turn-off power-off
shutdown shut-down turn-off power-off stop switch-off bring-down / pause suspend hold stop freeze
restart reboot bounce recycle power-cycle reload reset / resume continue unpause proceed
cancel call-off abort void revoke annul scrap withdraw undo
revoke invalidate withdraw cancel disable / close resolve finish complete end solve done settle shut
finish complete end conclude
undo revert restore rollback roll-back reset recover go-back take-back / reverse undo back-out
restore recover bring-back undelete load return get-back / retry rerun repeat again redo try-again
reopen again reactivate come-back recur / save store keep write record persist preserve hold retain
commit record save check-in / build compile make assemble package / test check try verify
check verify validate test inspect examine confirm ensure / check < is are does whether status
compare diff difference contrast versus vs changed / join merge combine concatenate unite unify
merge < deduplicate dedupe consolidate double duplicate / split divide separate partition break-up
compress zip archive pack gzip tar shrink / extract unzip decompress unpack untar expand
enable activate unlock allow turn-on switch-on on / disable deactivate turn-off switch-off off
suspend block lock ban freeze / block forbid deny ban blacklist blocklist prevent reject refuse stop
allow permit whitelist allowlist unblock accept enable grant let authorize
approve accept confirm authorize sign-off ok okay green-light agree / reject decline refuse deny
grant give allow provide permit share / revoke take-away ungrant / request ask apply demand
connect attach link join pair bind / disconnect detach unlink unpair unbind separate
subscribe follow sign-up / unsubscribe leave opt-out stop-receiving unfollow
import load ingest upload bring-in / export save write dump download extract backup spreadsheet
convert transform turn-into change translate transcode / translate localize language version
sort order rank arrange / count many number total sum tally how-many amount quantity
compute calculate work-out determine figure-out derive / estimate forecast predict guess approximate
measure gauge test benchmark evaluate assess quantify / evaluate assess rate judge score grade
install set-up setup deploy add provision / uninstall remove / upgrade update bump newer better
schedule plan book arrange timetable rotation / reserve book hold keep
assign give allocate delegate hand-over appoint designate set
transfer hand-over pass move reassign / forward pass-on send-on redirect relay pass
reply answer respond response react write-back / notify alert inform tell warn message remind
remind reminder nudge chase follow-up prompt / mute silence quiet snooze hush hide ignore suppress
hide conceal mask suppress invisible / snooze later postpone defer delay remind
postpone reschedule move delay defer push-back / escalate raise bump next-level manager
acknowledge ack confirm handle look-into work-on take / mark label tag flag annotate
label sticker tag / highlight pin emphasize star bookmark
comment note remark reply annotation discuss / discuss comment talk debate
explain describe why reason clarify interpret / summarize summary recap digest overview abstract
monitor follow tail observe track live stream / track trace follow locate where
plot chart graph draw visualize diagram / render draw print display convert / print printable paper
sign signature esign autograph / encrypt cipher protect / decrypt decipher
hash checksum digest fingerprint sha md5 / generate create produce make
share public link publish give access collaborate / publish release public live post make-public
redact mask anonymize remove hide obfuscate scrub censor / anonymize anonymous pseudonymize redact
archive store freeze read-only shelve retire / keep retain preserve hold retention
use apply utilize consume / apply run use execute / scale resize grow replicas instances capacity
resize scale bigger smaller enlarge upgrade memory / extend renew prolong lengthen
renew refresh extend update rotate / rotate renew cycle change / synchronize sync mirror replicate
crawl scrape spider fetch / parse read analyze interpret / format prettify beautify lint tidy
buy purchase order procure acquire shop / sell sale vendor / return send-back give-back bring-back
refund reimburse repay money-back give-back return / charge bill invoice debit
pay payment settle transfer remit / withdraw payout transfer cash-out
hire recruit onboard employ join new / fire dismiss offboard terminate lay-off leave
offboard leave quit resign leaver exit / leave exit quit part depart go-away
enroll register sign-up train join / promote advance upgrade move
swap trade exchange switch change / override replace substitute supersede cover
replace swap substitute change / collect gather capture aggregate fetch / capture take collect grab
scan read barcode look-up / identify recognize detect who / detect find discover spot notice
browse view explore look-at / write compose author draft type / preview draft look
invite guest ask attendee participant / attend accept go-to join rsvp

back-up backup dump snapshot save copy / snapshot image backup copy freeze
log-in login sign-in authenticate session log-on log-into
log-out logout sign-out log-off end-session / sign-up signup register join enroll
password passphrase passcode pwd credential / credential secret password key token
token key api-key apikey / mfa 2fa two-factor second-factor otp
mfa < authenticator totp multi-factor two-step / identity who whoami account me profile myself
key ssh-key public-key / permission access right role privilege scope grant authorization
certificate cert ssl tls https x509 / vulnerability cve weakness exploit security
secret credential variable confidential sensitive hidden / firewall block rule port
audit history who-changed log trail changed / policy rule regulation guideline allowed
policy < entitlement compliance / authorization authorisation hold permission auth
authentication auth login / leaked compromised stolen

file document doc attachment blob object / folder directory dir path / document file page paper
filename file name / attachment attach file enclosure / page article document wiki post entry
wiki docs documentation page / docs documentation manual guide wiki knowledge
outline toc contents headings structure chapters table-of-contents / link url hyperlink
broken dead invalid 404 / picture image photo graphic banner illustration / video movie clip footage
audio sound music song recording / text string content words / pdf printable print
csv spreadsheet excel table xlsx sheet / table sheet grid / row record entry line
field column attribute property / attribute property characteristic / record entry row item
version revision release edition / release version ship tag rollout
previous earlier last past former back old yesterday / history past previous earlier log recent
recent latest last history new current / latest current newest recent now
name title label identifier / title heading name / id identifier number key
type kind category class / category group type tag section / group team set segment cluster
storage space disk bucket drive capacity / disk drive volume storage space
space room storage usage / quota limit used space left remaining allowance
usage use consumption utilization used / size big large biggest largest usage how-big space
unused stale dead obsolete idle nobody / left remaining on-hand hand / trash bin recycle wastebasket
cache buffer memory / queue backlog / setting configuration config preference option
variable env environment setting / default standard / environment env stage staging production prod
production prod live / staging stage test preprod / schema structure migration
migration schema upgrade / database db sql postgres mysql store
database < table postgresql sqlite oracle mongodb / statement query sql / lock wait block deadlock
lag delay latency behind slow / replica copy secondary standby replication instance
instance machine server vm node host replica / server machine host vm instance node box computer
machine computer vm instance device / memory ram / processor cpu core / host server machine domain
vm machine virtual-machine instance ec2 cloud / container docker pod image / cluster kubernetes k8s
shell terminal ssh console command remote / disk < ssd hdd / cost price expensive bill charge spend
service application app system component microservice / process task job program
job task work build run / task todo job item assignment / pipeline workflow build job
build pipeline compile ci job / artifact binary result output build executable / output log result
ci build pipeline continuous-integration / test spec unit
flaky unreliable unstable random intermittent / coverage tested covered
fail error failed broken crash / failed broken failure unsuccessful fail
error exception failure bug problem crash fail fault / bug issue defect error problem ticket
issue ticket bug problem case / ticket case issue request
ticket < complaint help-desk helpdesk support problem / support help assistance
problem issue trouble / urgent priority important critical severity asap
priority urgency importance severity / incident alert outage page emergency alarm problem
alert alarm warning notification warn page / page < pager wake-up wake beep
duty on-call shift oncall turn cover / shift turn rota / oncall < pager duty rotation
rotation schedule roster rota / handover hand-off take-over / alarm threshold alert warn limit
threshold limit level minimum / notification alert message / log logs logging journal logfile
verbosity level debug verbose / trace span request follow path / repository repo source git codebase
branch fork line / pull-request pr merge-request / pull-request < patch proposal
code source program script / commit change changeset revision / blame annotate author who-wrote
review approval feedback look-at read / author writer creator who / tag release mark version
deployment rollout release deploy / deploy release ship rollout roll-out
deploy < go-live put-live production launch / rollout deploy gradual percentage release
canary percent share gradually small partial / percentage percent share portion / promote production
freeze forbid lock stop no block / flag toggle feature switch feature-flag
switch flag toggle change / feature function capability flag / beta preview early experiment
experiment test variant trial ab-test / variant version alternative option / stale unused old dead
network internet connection lan wifi / address ip location / port socket / domain host dns
dns resolve domain nameserver name / route path traceroute hop
ping reachable up alive answer online / bandwidth speed throughput fast / vpn private tunnel remote
traffic requests load visitors / expire expiry run-out end lapse past
expire < expired outdated valid / remote distant away / webhook callback hook
endpoint url route api / request call query / response answer reply result / domain < website site
website site page web / browser web / url link address uri

email mail message e-mail / inbox mailbox mail / message msg dm text chat
chat message conversation channel im / channel room group chat / room channel space
room < conference meeting / dm direct private personal / thread reply conversation answer
emoji reaction thumbs-up smiley like / react reaction emoji like thumbs-up
newsletter mailing bulletin / mailing newsletter list / phone telephone call mobile number
call phone conversation telephone ring / number phone digit
contact person customer address details / contact < reach / conversation call talk chat discussion
sms text message / voicemail message / meeting event appointment call
appointment meeting event slot / calendar schedule agenda diary / agenda schedule day today plan
available free open vacant / free available slot everybody
guest attendee participant invitee visitor / invitation invite rsvp / reminder remind notification
everybody everyone all / person people user somebody someone human
team group department squad unit / department team division / colleague coworker teammate peer
boss manager supervisor lead / user usr account member person people customer
account user profile customer / customer client buyer consumer account shopper
employee staff worker personnel colleague / staff employee team people / people employee staff hr
manager boss reports / salesperson sales rep seller / lawyer attorney legal
lawyer < counsel solicitor / agent representative support operator / engineer developer responder
vendor supplier seller provider / supplier vendor source / carrier courier shipping shipper
owner maintainer responsible / maintain own responsible care / org hierarchy organization structure
report boss manager / organization company org / company business firm corporate

vacation holiday absence leave time-off pto day-off / leave < sick / salary pay wage earn income
pay wage salary earn compensation / review appraisal performance evaluation
performance appraisal yearly annual / badge pass card building / pass card badge ticket
course class training lesson seminar / train course class teach learn / directory contacts phonebook
employee < hire / candidate applicant / interview candidate meeting / payroll salary
lead prospect potential opportunity / deal opportunity sale / funnel pipeline stage deal
forecast prediction outlook / revenue sales income turnover earnings / sales revenue crm deal
churn leave quit lose cancel / quote offer proposal price / offer quote proposal bid
segment group cohort audience / stage step phase / invoice < receivable overdue unpaid
unpaid overdue open due / overdue late unpaid past-due / paid payment cash / tax vat gst duty
fee commission charge cost / receipt expense bill voucher / expense cost spend claim receipt
claim request expense / credit note memo refund / credit < credit-memo
draft unfinished unsent incomplete / money funds cash amount payment / fund money balance
balance money funds account / price cost rate / price cost amount < how-much expensive cheap
transaction payment transfer purchase / chargeback dispute contested
dispute contest challenge object complaint chargeback / bank account / card credit debit credit-card
method way card / currency exchange money / discount coupon voucher promo
subscription plan membership / budget spend limit money / spend cost budget expense
worth value price / value worth amount / financial finance accounting
product item goods article sku / goods product item merchandise / cart basket
stock inventory warehouse supply / warehouse stock depot store / low running-out short few
reorder replenish restock buy / parcel package shipment box delivery / ship deliver send dispatch
shipping delivery shipment / delivery shipping address / several multiple parts many / part piece
catalog list products / expire best-before spoiled / questionnaire survey poll form
answer response reply say / question ask / result answer outcome response
nps promoter satisfaction / score rating points / rating score review stars
feedback comment review opinion / campaign ad advert advertisement advertising promotion
ads < marketing / banner creative picture ad image / audience target who demographic / click ctr
keyword search-term / impression view ctr / report statistics stats analytics metrics figures
metric measurement statistics / dashboard report overview chart / bid price offer
target audience aim

trip travel journey tour / plane airline fly air / plane airplane air / seat class
hotel accommodation room lodging stay motel / car vehicle auto rental / rent hire lease
rental rent / booking reservation / itinerary plan route trip / visa entry passport
requirement need must / train rail / taxi cab ride / better upgrade improve optimize
receipt reimburse claim / company employer

sensor device probe meter thermometer / device sensor gadget tracker hardware
measurement reading value data temperature / battery power charge
position location where gps coordinates / location position place where gps
firmware software update ota over-the-air / pair bluetooth connect / offset bias / calibrate adjust
temperature measurement degrees / weather forecast temperature / threshold < limit
model classifier network / train fit learn retrain / predict inference infer score
accuracy precision quality good correct / dataset data data-set training-data / data dataset records
data < information info / information info details data / parameter hyperparameter setting
tune optimize hyperparameter improve / optimize tune improve optimization / feature importance
matter important importance / example sample instance / drift shift change
serve host deploy provide / incoming new live / training learning

contract agreement deal / nda non-disclosure confidentiality / confidentiality secret private nda
legal law lawyer contract / lawsuit litigation court trial case
personal private individual customer / privacy gdpr personal-data data-protection
gdpr < dsar subject-access forgotten / consent agree permission accept opt-in terms
trademark brand protected name / protected brand registered / electronic digital online
terms conditions agreement / license licence permission / forget erase delete / soon next upcoming
next upcoming following coming / day daily today / monthly month / percentage rate
limit cap maximum quota / many several multiple much / everything all / wrong incorrect bad mistake
mistake error wrong / public open shared everyone

session close < log-out logout sign-out log-off / reset < forget forgotten lost
status progress state condition health / status < finished ready done going
health alive up running / clean tidy cleanup clean-up prune vacuum reclaim free-up
optimize vacuum compact defragment / count number < how-many
position location address < where-is where-are / owner author < who-owns / time date hour when
date day time deadline / deadline due date / duration length time period
period range interval month quarter window / week weekly / year yearly annual / hour hourly
clone < check-out checkout / switch check-out checkout / branch < check-out
outage downtime down crash incident / load traffic usage busy / slow latency performance sluggish
speed performance fast rate / bulk batch mass several multiple / automatic auto scheduled
temporary short-lived for-a-while while / permanent forever for-good / blank empty
security protection safety / protect secure guard / breach leak hack compromise / threat risk danger
map location region area / region area zone place / language locale translation / country region
topic subject channel theme / subject topic title / tag topic category / shop store
raise increase raise-up grow / increase raise grow more higher add
decrease reduce lower fewer less cut / lower decrease reduce drop / limit restrict throttle
throttle rate-limit slow-down / bonus salary pay / complaint complain ticket dispute
help support assist guide / hours shift time / absent absence away leave / sick leave absence
staff < workforce headcount / headcount count employee people / career job / resume cv candidate
skill training ability / sandbox staging test / debug troubleshoot diagnose investigate
investigate look-into examine analyze / analyze analyse inspect study examine evaluate
analytics statistics report insight / crash log error / exception error trace / stack trace
monitor health check / uptime up available / visitor traffic guest / lead contact
goal target objective / milestone goal stage / workspace project channel / board project
spec specification requirement / requirement spec rule / compliance policy legal audit rule
proof evidence receipt / evidence document hold / witness sign / stamp sign label / seal sign
ledger transaction account / deposit payment / wire transfer / loan credit / install firmware update
humidity measurement / signal strength / picture scan / crop resize cut / rotate turn
thumbnail preview image / watermark stamp / queue wait pending / pending waiting open outstanding
outstanding overdue open unpaid / resolve dns solve / hang stuck block wait
stuck wait blocked hang frozen / bottleneck slow wait / index search list / vacancy job opening
demote lower / postal address shipping / street address / zip-code address / label print
barcode code scan sku / unsubscribe stop-getting / spam junk unwanted / junk spam trash
recipient address customer / broadcast announce publish send / announce publish post / tweet post
news newsletter announcement / annotation label comment / emoji emoticon / sticky pin
top pin first / bottom below / colour color / favourite favorite star / centre center
catalogue catalog

boot startup start-up on-boot autostart at-boot / enable < boot startup start-up autostart at-boot
service unit daemon process / system machine computer host / machine < laptop workstation
poweroff shut-down power-off turn-off / halt shut-down stop / reload reread refresh re-read
stash shelve put-away save-for-later / dirty uncommitted unsaved modified
local own working / working current local / untracked unknown unversioned new
discard throw-away undo forget drop restore
commit revision changeset version / history log past commits / reapply replay again rebase
pick choose select take cherry / bug regression broke broken fault / introduce cause bring add
exec shell run console inside open terminal / attach connect join enter / inspect details show info
top usage cpu memory resource / statistics stats usage metrics / stats cpu memory usage resource
live real-time stream continuous current / running active alive up started
pod container instance workload / cluster < nodes / container < box
replica instance copy pod / scale replicas number count size more / size number count amount
drain evict empty remove / cordon unschedulable stop-scheduling / schedulable available usable
forward tunnel port redirect / expose publish open make-available / rollout release update deploy
manifest yaml configuration file definition spec / resource object
configuration file yaml settings
layer history level / registry hub repository / image picture template snapshot
dependency requirement package library module
upgrade update newer outdated / outdated old upgrade newer behind / lock pin freeze version
lint check style quality / benchmark measure speed performance
package bundle archive tarball / publish release upload registry / yank retract withdraw
session window terminal / pane split window / detach leave disconnect background
mask prevent forbid block never / unmask allow / timer schedule cron next / dump show print export
owner maintainer author admin / vulnerability insecure advisory audit / audit vulnerability security
repository source mirror / hold keep pin prevent / purge configuration completely fully
documentation docs manual help / manual help documentation guide / license legal terms copyright
environment variable variables env / init new create start scaffold / scaffold template new skeleton
alias shortcut nickname / template skeleton boilerplate / namespace scope group
interactive repl shell console / key-value pair / index search lookup / symlink link shortcut
mount attach connect / unmount detach eject
"""
